"""Tests of SQL's texts and functions, without a runner."""
