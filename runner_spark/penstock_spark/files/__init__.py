"""Files on any file system that Spark reaches: finding, splitting, naming, and moving them to their final names."""
