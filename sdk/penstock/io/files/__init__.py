"""Files as sources and sinks find, read, name and write them, whatever is in them."""
