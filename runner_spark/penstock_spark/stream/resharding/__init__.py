"""The state of a level for another number of shards: headers and pages, and the operator that takes them in."""
