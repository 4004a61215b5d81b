"""Documented commands, each in a new process."""
