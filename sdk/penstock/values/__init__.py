"""The types of values that may cross a border: files, columns, databases and queries."""
