"""The meaning of grouping: plain state machines for one key, with the watermark and the clock as arguments."""
