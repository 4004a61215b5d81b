"""The compiler from a penstock graph to Spark jobs, and the runtime inside Spark's Python workers."""
