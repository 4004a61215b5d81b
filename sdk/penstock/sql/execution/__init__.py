"""From a logical plan to transforms and the steps in them, or to one query of Spark's."""
