"""Functions that make rows of a row: what a query may call, which columns they have, and which rows."""
