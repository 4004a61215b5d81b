"""Jobs in SQL: files of statements that read tables, compute and write tables."""
