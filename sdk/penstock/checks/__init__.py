"""Checks of arguments, made when the pipeline is built."""
