"""The folder of a checkpoint: which run holds it, and what each run leaves in it."""
