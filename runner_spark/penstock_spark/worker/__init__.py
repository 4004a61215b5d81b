"""The code that runs inside Spark's Python workers: fused stages over batches of elements."""
