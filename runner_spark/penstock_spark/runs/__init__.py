"""A run: a plan, a session, and the result or the handle for the user."""
