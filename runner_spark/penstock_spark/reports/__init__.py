"""What workers report to the driver: metrics, failures, and the files that they read and write."""
