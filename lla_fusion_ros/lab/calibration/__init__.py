"""Everything that is fitted after the networks: posterior, fusers, warnings, the default."""
