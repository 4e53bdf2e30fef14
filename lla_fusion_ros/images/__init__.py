"""Images: messages and boxes in; checked pixels, crops and annotated pictures out. Imports `types`."""
