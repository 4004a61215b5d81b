"""The process that a driver or a worker is: its folders, its environment, its signals."""
