"""The nodes, and all that imports rclpy: they subscribe, offer to a Perception, and publish what it gives.

In: DDS messages as bytes. Out: the topics of the contract, diagnostics, parameters, lifecycle. `executables`
holds the entry points. Imports everything up to `stream`, and `bags` for the player and the recorder.
"""
