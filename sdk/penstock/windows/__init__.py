"""Where in event time and when: windows, triggers, and the value that holds the answers."""
