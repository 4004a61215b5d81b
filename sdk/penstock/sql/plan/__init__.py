"""The logical plan of a query, and facts about it."""
