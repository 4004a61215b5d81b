"""What one shard of a streaming level does in one micro-batch: many keys, their machines, and their state in pages."""
