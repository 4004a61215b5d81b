"""What the workers of a cluster can import, before and after the packages are shipped."""

from __future__ import annotations

from typing import Any


def test_workers_import_penstock_only_after_it_is_shipped_and_the_users_module_travels_by_value(
    outcomes: dict[str, Any],
) -> None:
    master, before, after = outcomes["shipping"]
    assert master.startswith("spark://127.0.0.1:")
    assert before == "MODULENOTFOUNDERROR"
    assert after.endswith(".ZIP/PENSTOCK/__INIT__.PY")
