"""Scalar expressions: one tree for `field` and SQL, one record for each function, and writers to Python and Spark."""
