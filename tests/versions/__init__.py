"""Tests of the versions of Spark."""
