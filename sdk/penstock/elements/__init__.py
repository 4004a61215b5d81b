"""Elements of a pipeline: rows, pairs, tagged values, and their windows."""
