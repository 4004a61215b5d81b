"""The checkpoint of a streaming query: the plan, what fits it, and its state as a table."""
