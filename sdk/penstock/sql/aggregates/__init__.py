"""SQL's aggregates: one record for each, in the module of its subject."""
