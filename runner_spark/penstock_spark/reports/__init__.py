"""Reports from workers to the driver: metrics, failures, and the files that they read and write."""
