"""Sums, counts and their like: what each of them is, and the loop that adds values up."""
