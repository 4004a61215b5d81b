"""Files on any file system that Spark reaches: found, split, named, and put in their place."""
