"""The surroundings of the code of a connector: ways to fail as its step, to wait for an answer, and to keep secrets."""

from penstock_spark.process.threads import CallTimeout, call_with_timeout, start_in_thread
from penstock_spark.reports.failure import fail_step, find_failure
from penstock_spark.reports.reporting import current_reporting
from penstock_spark.reports.secrets import redact_secrets

__all__ = [
    "CallTimeout",
    "call_with_timeout",
    "find_failure",
    "start_in_thread",
    "current_reporting",
    "fail_step",
    "redact_secrets",
]
