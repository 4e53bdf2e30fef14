"""One HTML file that shows what the fusion did: no network, no other file, fit for phones and dark mode."""
