"""Binds the tree of a query to its logical plan: names get their meaning, and values their types."""
