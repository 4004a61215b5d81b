"""A pipeline while it is written: its values, the transforms applied, and the graph that comes of them."""
