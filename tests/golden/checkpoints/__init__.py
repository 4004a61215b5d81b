"""Checkpoints that earlier versions have made."""
