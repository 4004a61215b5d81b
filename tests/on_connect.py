"""The tests that ``--connect`` leaves out, and those that it expects to fail in a session of Spark Connect.

Each has its reason. A key is a module, a test of it (``module::test``), or one case (``module::test[case]``); the most
precise one counts. A test that is expected to fail and passes is an error, so that its entry goes.
"""

from __future__ import annotations

from collections.abc import Mapping

_PROGRAMS = "it starts programs that have a Spark of their own, for which the switch changes nothing"

LEFT_OUT: Mapping[str, str] = {}

EXPECTED_FAILURES: Mapping[str, str] = {}


def reason_in(table: Mapping[str, str], module: str, function: str, case: str) -> str | None:
    """Returns the reason that a table has for a test; None without one.

    >>> table = {"test_a": "all", "test_a::test_b": "one"}
    >>> reason_in(table, "test_a", "test_b", "test_b[1]"), reason_in(table, "test_a", "test_c", "test_c")
    ('one', 'all')
    """
    keys = (f"{module}::{case}", f"{module}::{function}", module)
    return next((table[key] for key in keys if key in table), None)
