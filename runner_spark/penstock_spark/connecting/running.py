"""The surroundings of the code of a connector: ways to fail as its step, to wait for an answer, and to keep secrets."""

from penstock_spark.process.threads import NoAnswer, answer_of, in_thread
from penstock_spark.reports.failure import find_failure, step_failed
from penstock_spark.reports.reporting import reporting_now
from penstock_spark.reports.secrets import without_secrets

__all__ = [
    "NoAnswer",
    "answer_of",
    "find_failure",
    "in_thread",
    "reporting_now",
    "step_failed",
    "without_secrets",
]
