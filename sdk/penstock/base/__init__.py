"""The lowest layer: helpers that everything else may use, and that import only errors, times and each other."""
