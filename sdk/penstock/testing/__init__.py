"""Tools to test pipelines."""
