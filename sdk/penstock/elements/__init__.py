"""Elements of a pipeline: rows, pairs, tagged values, and the windows that they are in."""
