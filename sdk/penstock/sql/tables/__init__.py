"""Tables of SQL: what they are read from and written to."""
