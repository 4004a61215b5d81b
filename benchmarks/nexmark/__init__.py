"""The queries of the Nexmark benchmark over an auction house: as pipelines, in PySpark by hand, in plain Python."""
