"""Transforms of one element at a time, and PCollections made of values."""
