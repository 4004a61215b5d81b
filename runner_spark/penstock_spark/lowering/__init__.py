"""Lowers the plan to Spark's frames and jobs: one file for each kind of node, and no decisions."""
