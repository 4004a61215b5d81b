"""Tests of the figures of the paper and the book."""
