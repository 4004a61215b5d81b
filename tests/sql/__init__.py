"""Laws of SQL, without Spark."""
