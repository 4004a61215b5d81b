"""Tests on Spark."""
