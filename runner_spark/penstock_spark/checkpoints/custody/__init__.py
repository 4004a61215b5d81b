"""The folder of a checkpoint: the run that holds it, and the plans that runs leave in it."""
