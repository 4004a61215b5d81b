"""Laws of the machine that groups."""
