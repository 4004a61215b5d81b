"""Tests of the runner without Spark."""
