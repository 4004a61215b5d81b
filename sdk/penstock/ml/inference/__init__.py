"""Predictions of models in a pipeline (Beam's ``apache_beam.ml.inference``)."""

from penstock.ml.inference.run_inference import RunInference

__all__ = ["RunInference"]
