"""Each entry of the tables in `tests.on_connect` names tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.on_connect import EXPECTED_FAILURES, LEFT_OUT

_TEXTS: dict[str, str] = {}
for _path in Path(__file__).parent.rglob("test_*.py"):
    # Modules of two folders may have one name, and then share their entries.
    _TEXTS[_path.stem] = _TEXTS.get(_path.stem, "") + _path.read_text("utf-8")


def _names_tests(key: str) -> bool:
    """True if a key of the tables names a module of tests, or a function of one."""
    module, _, test = key.partition("::")
    return module in _TEXTS and f"def {test.partition('[')[0]}" in _TEXTS[module]


@pytest.mark.parametrize("key", [*LEFT_OUT, *EXPECTED_FAILURES])
def test_an_entry_names_tests_that_exist(key: str) -> None:
    assert _names_tests(key)


@pytest.mark.parametrize("key", ["test_gone", "test_tables_of_connect::test_gone"])
def test_an_entry_for_tests_that_are_gone_is_found(key: str) -> None:
    assert not _names_tests(key)


def test_no_test_is_left_out_and_expected_to_fail() -> None:
    assert not LEFT_OUT.keys() & EXPECTED_FAILURES.keys()
