"""Sources and sinks, with servers where they need them."""
