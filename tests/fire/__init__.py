"""Programs under injected faults."""
