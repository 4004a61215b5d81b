"""Python values in columns: those of Arrow and Spark, and the batches of NumPy, pandas and Arrow."""
