"""Images: bytes and boxes in, square RGB crops out; and labels drawn onto an image. Imports types."""
