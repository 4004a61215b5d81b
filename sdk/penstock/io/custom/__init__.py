"""Sources and sinks that users write in Python."""
