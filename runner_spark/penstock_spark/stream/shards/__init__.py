"""Groupings in a shard: their machines and windows, who is due next, and steps that wait for side inputs."""
