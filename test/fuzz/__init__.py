"""Every parser of bytes from outside as a fuzz target, shared by hypothesis and atheris."""
