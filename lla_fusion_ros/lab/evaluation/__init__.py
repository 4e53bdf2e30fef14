"""Score a bundle on tracks: every fuser, regime, length and number of networks."""
