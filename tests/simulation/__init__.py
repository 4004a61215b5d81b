"""Random programs in a simulated Spark, with faults."""
