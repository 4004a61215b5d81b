"""Spark itself: the session, its Java, its versions, and its workers' Python."""
