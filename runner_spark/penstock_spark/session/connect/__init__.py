"""Spark Connect: a session whose Spark runs elsewhere, and to which this program sends plans."""
