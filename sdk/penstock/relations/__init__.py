"""Relations: bags of rows that change, their joins, and the tables that their changes maintain."""
