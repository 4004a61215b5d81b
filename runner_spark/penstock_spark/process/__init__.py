"""The process of a driver or a worker: its folders, its environment, its signals."""
