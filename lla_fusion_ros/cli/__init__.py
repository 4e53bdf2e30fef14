"""The command line: one file per verb, each a few lines over the library. Only this folder prints."""
