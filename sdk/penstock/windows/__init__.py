"""Windows, triggers, and the value that holds an element's window, timestamp and pane."""
