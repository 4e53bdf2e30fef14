"""Speed and memory, as ratios measured side by side in one run: what `lla-fusion bench` runs."""
