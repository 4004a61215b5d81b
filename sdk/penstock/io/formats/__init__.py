"""Records in files: what a format declares, its rows and their types."""
