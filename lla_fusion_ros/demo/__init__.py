"""The demo: the sign world through the real nodes, as separate processes over real DDS."""
