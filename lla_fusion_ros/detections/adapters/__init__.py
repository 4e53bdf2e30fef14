"""One file per message type; each has an ADAPTER. Adding a type is adding a file."""
