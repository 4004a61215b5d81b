"""Counters and other measures that a pipeline's code takes while it runs."""

from penstock.metrics.metric import Lineage, Metrics, MetricsFilter

__all__ = ["Lineage", "Metrics", "MetricsFilter"]
