"""Everything that is fitted after the networks: posterior, fusers, warnings, the default."""

from lla_fusion_ros.calibration.trackviews import TrackViews, joined, stacked

__all__ = ["TrackViews", "joined", "stacked"]
