"""The options of a pipeline: flags, keyword arguments, views of them, and values known only at run time."""
