"""Counters and other metrics that a pipeline's code records while it runs."""

from penstock.metrics.metric import Lineage, Metrics, MetricsFilter

__all__ = ["Lineage", "Metrics", "MetricsFilter"]
