"""The work of a shard of a streaming level in one micro-batch: many keys, their machines, and their state in pages."""
