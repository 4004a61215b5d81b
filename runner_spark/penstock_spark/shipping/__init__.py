"""How code reaches the workers."""
