"""Sources that are read continuously: when their elements arrive, and how far event time has advanced."""
