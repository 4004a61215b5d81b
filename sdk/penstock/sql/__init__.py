"""SQL over PCollections, with the meaning that Spark gives it."""
