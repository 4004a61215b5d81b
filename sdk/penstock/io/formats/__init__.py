"""Records in files: the declarations of formats, the rows, and their types."""
