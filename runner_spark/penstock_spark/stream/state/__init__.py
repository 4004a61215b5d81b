"""The state of a shard in Spark's store: a header, pages of keys or windows, and segments."""
