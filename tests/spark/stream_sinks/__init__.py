"""Tests of the sinks of streams, on Spark."""
