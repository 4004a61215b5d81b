"""The formats that the runner reads and writes: one module or folder each, entered in `registry`."""
