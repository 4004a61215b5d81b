"""Turns a logical plan into transforms and the steps in them, or into one query in Spark's SQL."""
