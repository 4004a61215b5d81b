"""The shipping of code to the workers."""
