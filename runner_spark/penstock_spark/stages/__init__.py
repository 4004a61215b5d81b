"""Fused stages at work: the nodes of `worker` and `folding`, connected."""
