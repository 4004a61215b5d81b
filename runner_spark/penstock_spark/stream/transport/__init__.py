"""Messages between the tasks of a micro-batch: elements on their way to shards, and a shard's inbox."""
