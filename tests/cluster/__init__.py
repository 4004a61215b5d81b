"""Tests on a Spark cluster of this machine."""
