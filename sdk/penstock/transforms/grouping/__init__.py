"""Transforms that bring elements together: by key, by window, in batches."""
