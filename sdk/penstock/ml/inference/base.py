"""Beam's import path for `RunInference` and its handlers."""

from penstock.absent import hint_at_absent_names
from penstock.ml.inference.handlers import ModelHandler, PredictionResult
from penstock.ml.inference.keyed import KeyedModelHandler, KeyModelMapping, MaybeKeyedModelHandler
from penstock.ml.inference.run_inference import RunInference, RunInferenceDLQ

__all__ = [
    "KeyModelMapping",
    "KeyedModelHandler",
    "MaybeKeyedModelHandler",
    "ModelHandler",
    "PredictionResult",
    "RunInference",
    "RunInferenceDLQ",
]

hint_at_absent_names(globals())
