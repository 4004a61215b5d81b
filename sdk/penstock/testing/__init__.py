"""Tools with which authors test pipelines."""
