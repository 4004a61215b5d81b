"""Beam's own tests pass on penstock, but for those that are listed with a reason."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests.beam_suite import page_of_beams_tests
from tests.beam_suite.porting import PACKAGE, Modules, beam_test_modules, expected_failures, ported
from tests.beam_suite.public_names import inner_part

MODULES = Modules.read()


def run_suite(counts: Path, *arguments: str) -> dict[str, dict[str, dict[str, int]]]:
    pytest.importorskip("parameterized")
    command = [sys.executable, "-m", "tests.beam_suite", "--counts", str(counts), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout[done.stdout.find("= Beam's own tests") :])
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    found: dict[str, dict[str, dict[str, int]]] = json.loads(counts.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.soak) for first in range(1, 8))]
)
def test_the_tests_of_beam_pass_that_need_no_spark(tmp_path: Path, first: int) -> None:
    """Those of every eighth module."""
    pytest.importorskip("apache_beam")
    run_suite(tmp_path / "counts.json", "--engine=toy", *MODULES.tests[first::8])


@pytest.mark.beam_suite
def test_the_tests_of_beam_pass(tmp_path: Path) -> None:
    counts = run_suite(tmp_path / "counts.json")["counts"]
    shares = {group: count["passed"] / count["of"] for group, count in counts.items()}
    assert {group: share for group, share in shares.items() if share < 0.97 - 0.05 * (group == "unit")} == {}


def test_every_test_module_of_beam_is_ported_or_left_out_with_a_reason() -> None:
    pytest.importorskip("apache_beam")
    theirs = beam_test_modules()
    assert len(theirs) > 400
    assert set(MODULES.tests) <= set(theirs)
    neither = [module for module in theirs if module not in MODULES.tests and MODULES.reason(module) is None]
    both = [module for module in MODULES.tests if MODULES.reason(module) is not None]
    assert (neither, both) == ([], [])


def test_every_expected_failure_has_a_reason_and_a_module_that_is_ported() -> None:
    assert [name for name, why in expected_failures().items() if len(why) < 10] == []
    assert {name.partition("::")[0] for name in expected_failures()} <= set(MODULES.tests)


def test_the_page_about_beams_names_tells_every_reason() -> None:
    text = page_of_beams_tests.PAGE.read_text(encoding="utf-8")
    assert page_of_beams_tests.BEGIN in text
    assert page_of_beams_tests.updated(text) == text, "run: python -m tests.beam_suite.page_of_beams_tests"
    told = page_of_beams_tests.section()
    reasons = {*expected_failures().values(), *MODULES.left_out.values(), *MODULES.left_out_tests.values()}
    assert [why for why in reasons if page_of_beams_tests.cell_of(why) not in told] == []


def test_a_ported_module_has_the_names_of_penstock_in_code_and_in_strings_line_by_line() -> None:
    text = (
        '"""A module."""\n# A comment.\nimport apache_beam as beam\nfrom apache_beam.io import (\n    a,\n    b as c)\n'
        "from . import window_test\nmock.patch('apache_beam.transforms.util.f')\n"
    )
    lines = ported(text, "transforms.x_test", {"transforms.window_test"}).split("\n")
    ast.parse("\n".join(lines))
    assert lines[2:8] == [
        "beam = _taken('penstock')",
        "a = _taken('penstock.io', 'a'); c = _taken('penstock.io', 'b')",
        "",
        "",
        f"from {PACKAGE}.transforms import window_test as window_test",
        "mock.patch('penstock.transforms.util.f')",
    ]


def test_a_string_that_goes_on_in_the_next_line_names_a_ported_module() -> None:
    text = "mock.patch(\n    'apache_beam.examples.'\n    'count.print')\n"
    assert f"'{PACKAGE}.examples.'" in ported(text, "x_test", {"examples.count"})
    assert "'penstock.examples.'" in ported(text, "x_test", {"io.count"})


def test_what_a_test_mocks_is_what_it_asks_for() -> None:
    def error_of(target: str) -> BaseException:
        try:
            mock.patch(target, None)(lambda: None)()
        except (AttributeError, ImportError) as error:
            return error
        raise AssertionError

    assert inner_part(error_of("penstock.coders.coders._inner"), "beam_suite") == "_inner"
    assert inner_part(error_of("penstock.utils.secret.Secret"), "beam_suite") == "penstock.utils.secret"
    assert inner_part(error_of("penstock.coders.coders.inner"), "beam_suite") is None
