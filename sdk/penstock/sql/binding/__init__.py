"""From the tree of a query to its logical plan: the meaning of names, the types of values."""
