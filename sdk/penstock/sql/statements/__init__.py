"""The statements of jobs in SQL, and how they are read."""
