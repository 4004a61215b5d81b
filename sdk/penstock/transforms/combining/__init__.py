"""Many values become one: the transforms, and the ready-made combiners."""
