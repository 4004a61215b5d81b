"""The classic session: a session of a Java process that this program calls."""
