"""Spark itself: the session, its Java, its versions, and the Python of its workers."""
