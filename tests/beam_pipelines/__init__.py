"""Beam's own pipelines, on Spark."""
