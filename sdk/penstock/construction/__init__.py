"""A pipeline under construction: its values, the applied transforms, and the graph that they form."""
