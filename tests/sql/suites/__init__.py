"""Queries with their results that other projects publish, and what plays them."""
