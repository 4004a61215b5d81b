"""Arrow columns as Python values, and Python values as Arrow columns."""
