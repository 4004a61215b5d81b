"""Beam's path for the buckets of histograms, which `penstock.metrics.metric.Metrics.histogram` takes."""

from penstock.absent import hint_at_absent_names
from penstock.metrics.histogram import BucketType as BucketType
from penstock.metrics.histogram import LinearBucket as LinearBucket

hint_at_absent_names(globals())
