"""What the workers of a cluster can import, before and after the packages are shipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

_JOBS = Path(__file__).parent / "jobs"


def test_workers_import_penstock_only_after_it_is_shipped_and_the_users_module_travels_by_value(
    run_on_cluster: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    master, before, after = run_on_cluster(_JOBS / "import_before_and_after.py").stdout.splitlines()
    assert master.startswith("spark://127.0.0.1:")
    assert before == "MODULENOTFOUNDERROR"
    assert after.endswith(".ZIP/PENSTOCK/__INIT__.PY")
