"""Damaged texts, keys, pages, checkpoints and files."""
