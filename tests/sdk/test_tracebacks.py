"""A failure shows the lines of the program and no others, unless all are asked for, or penstock did not expect it."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import penstock as beam
from penstock import tracebacks
from penstock.construction import pipeline
from penstock_conformance.command import main

OURS = (
    "/penstock/",
    "/penstock_spark/",
    "/penstock_conformance/",
    "/pyspark/",
    "/py4j/",
    "runpy",
    "contextlib",
)

BUILT_BY = """
import penstock as beam

class Totals(beam.PTransform):
    def expand(self, pcoll):
        return make(pcoll)

def make(pcoll):
    return pcoll | beam.Map(str) | beam.CombinePerKey(sum)

"""

PROGRAMS = {
    "an expand of the program": (f"{BUILT_BY}beam.Pipeline() | beam.Create([1]) | Totals()", (11, 6, 9)),
    "a label that is used twice": (
        "import penstock as beam\np = beam.Pipeline()\np | beam.Create([1])\np | beam.Create([2])",
        (4,),
    ),
    "a length of 0": ("import penstock as beam\nbeam.window.FixedWindows(0)", (2,)),
    "an option by keyword": ("import penstock as beam\nbeam.Pipeline(checkpoint_locaton='a')", (2,)),
    "a keyword that is passed on": ("import penstock as beam\nbeam.io.ReadFromText('x', codr=1)", (2,)),
    "an import": ("from penstock import Pipelin", (1,)),
    "a module": ("import penstock.transforms.windw", (1,)),
    "a column of a query": (
        "import penstock as beam\n"
        "from penstock.transforms.sql import SqlTransform\n"
        "rows = beam.Pipeline(mode='streaming') | beam.Create([beam.Row(team='red')])\n"
        "rows | SqlTransform('SELECT taem FROM PCOLLECTION')",
        (4,),
    ),
    "a file that is missing": (
        "import penstock as beam\nbeam.Pipeline() | beam.io.ReadFromText('/none')",
        (2,),
    ),
    "an error of its own": ("import penstock as beam\nbeam.Pipeline() | beam.Create({}['a'])", (2,)),
}
MEANT = {
    "an option by keyword": "checkpoint_location",
    "a keyword that is passed on": "coder",
    "an import": "Pipeline",
    "a module": "penstock.transforms.window",
    "a column of a query": "'team'",
}

JOB = "CREATE TABLE t (a INT) WITH (format = 'csv', path = '{}');"


def run(program: str, folder: Path) -> BaseException:
    """What ends a program, as Python hands it to the hook that prints it."""
    file = folder / "game.py"
    file.write_text(program)
    try:
        exec(compile(program, str(file), "exec"), {"__name__": "game"})
    except Exception as error:
        # The line of this file is not the program's.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        return error
    raise AssertionError("the program does not fail")


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], str]:
    def through_hook(error: BaseException) -> str:
        parts: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(
                sys, "excepthook", lambda *given: parts.append("".join(traceback.format_exception(*given)))
            )
            tracebacks.install_hook()
            sys.excepthook(type(error), error, error.__traceback__)
        return parts[0]

    return through_hook


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("  File ")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_program_shows_its_own_lines_and_what_it_means(
    name: str, tmp_path: Path, printed: Callable[[BaseException], str]
) -> None:
    program, expected = PROGRAMS[name]
    text = printed(run(program, tmp_path))
    shown = lines_of(text)
    assert [int(line.split(" line ")[1].split(",")[0]) for line in shown] == list(expected)
    assert all("game.py" in line for line in shown)
    assert text.count("Traceback") == 1
    assert len(text.splitlines()) < 12 + 3 * len(expected)
    assert f"did you mean {MEANT.get(name, '')}" in text or name not in MEANT


@pytest.mark.parametrize("how", ["flag", "variable", "option"])
def test_all_lines_are_shown_if_the_program_asks_for_them(
    how: str, tmp_path: Path, printed: Callable[[BaseException], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracebacks, "_asked", False)
    match how:
        case "flag":
            monkeypatch.setattr(sys, "argv", ["game.py", "--full_trace"])
        case "variable":
            monkeypatch.setenv("PENSTOCK_FULL_TRACE", "1")
        case _:
            beam.Pipeline(full_trace=True)
    text = printed(run(PROGRAMS["an expand of the program"][0], tmp_path))
    assert any("/penstock/" in line for line in lines_of(text))
    assert len(lines_of(text)) > 10


def test_what_leaves_a_pipeline_has_no_lines_of_ours_for_any_reader(tmp_path: Path) -> None:
    error = run(PROGRAMS["an expand of the program"][0], tmp_path)
    assert [frame.lineno for frame in traceback.extract_tb(error.__traceback__)] == [11, 6, 9]
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_an_error_that_penstock_did_not_expect_keeps_all_lines_and_asks_for_a_report(
    tmp_path: Path, printed: Callable[[BaseException], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "inputs_of", len)
    text = printed(run("import penstock as beam\nbeam.Pipeline() | beam.Create([1])", tmp_path))
    assert any("/penstock/construction/pipeline.py" in line for line in lines_of(text))
    assert text.count("penstock did not expect this error: please report it") == 1


def test_an_error_without_penstock_is_left_alone(printed: Callable[[BaseException], str]) -> None:
    import json

    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    before = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert [line.rpartition(" in ")[2] for line in lines_of(printed(caught.value))] == before
    assert before[-1] == "raw_decode"


def test_what_led_to_an_error_is_shown_if_it_is_the_programs(tmp_path: Path) -> None:
    program = (
        "import penstock as beam\n"
        "class Own(beam.PTransform):\n"
        "    def expand(self, pcoll):\n"
        "        try:\n"
        "            return {}['a']\n"
        "        except KeyError as error:\n"
        "            raise ValueError('b') from error\n"
        "beam.Pipeline() | Own()\n"
    )
    error = run(program, tmp_path)
    assert isinstance(error.__cause__, KeyError)
    assert [frame.lineno for frame in traceback.extract_tb(error.__cause__.__traceback__)] == [5]
    assert [frame.lineno for frame in traceback.extract_tb(error.__traceback__)] == [8, 7]


def half(number: int) -> float:
    return number / 0


def raised_in(module: str, call: Callable[[], object]) -> BaseException:
    """What a call raises that a module of penstock makes."""
    with pytest.raises((ArithmeticError, ValueError, OSError)) as caught:
        exec(compile("call()", f"{module}.py", "exec"), {"__name__": module, "call": call})
    return caught.value


def test_the_text_of_an_exception_has_the_lines_of_the_function_alone() -> None:
    error = raised_in("penstock.transforms.dead_letters", lambda: half(1))
    entries = len(traceback.extract_tb(error.__traceback__))
    text = "".join(tracebacks.format_failure(error))
    assert [line.rpartition(" in ")[2] for line in lines_of(text)][-2:] == ["<lambda>", "half"]
    assert "dead_letters.py" not in text
    assert text.endswith("ZeroDivisionError: division by zero\n")
    assert len(traceback.extract_tb(error.__traceback__)) == entries


@pytest.mark.parametrize(
    ("module", "call", "fault"),
    [
        ("penstock_spark.worker.steps", lambda: half(1), False),
        ("penstock_spark.stream.state.pages", lambda: half(1), False),
        ("penstock_spark.worker.steps", lambda: int("x"), False),
        ("penstock_spark.worker.steps", "int_of_x", False),
        ("penstock_spark.stream.state.pages", "int_of_x", True),
    ],
    ids=["a function", "a function that a machine calls", "a lambda", "int itself", "a fault"],
)
def test_a_fault_in_a_worker_is_where_no_user_chooses_what_is_called(
    module: str, call: Callable[[], object] | str, fault: bool
) -> None:
    error = raised_in(module, partial(int, "x") if isinstance(call, str) else call)
    assert tracebacks.is_fault(error, over_users_values=True) is fault


class ServerError(ValueError):
    """As a client of a database defines it."""


@pytest.mark.parametrize("error", [ServerError("no"), ConnectionError("no")], ids=["a library", "the system"])
def test_an_error_from_outside_is_no_fault_and_says_how_to_see_all_lines(
    error: Exception, printed: Callable[[BaseException], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServerError, "__module__", "psycopg.errors")
    loop = asyncio.new_event_loop()
    refused = loop.create_future()
    refused.set_exception(error)
    loop.close()
    # A method in C raises it, as that of a client would.
    raised = raised_in("penstock_connectors.database.rows", refused.result)
    assert not tracebacks.is_fault(raised)
    text = printed(raised)
    assert "rows.py" not in text
    assert text.endswith("  hint: add --full_trace to see what penstock did\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["graph", "{}/game.py"], ["<module>", "build"]),
        (["graph", "{}/none.py"], []),
        (["sql", "CREATE TABLE t (a INT) WITH ('connector' = 'fles');"], []),
        (["sql", "{}/none.sql"], []),
        (["sql", f"{JOB} SELECT a FROM t", "--shuffle_partitions=0"], []),
    ],
    ids=["a program", "no program", "a query", "no file", "a run"],
)
def test_a_command_shows_the_lines_of_the_program_or_none(
    arguments: list[str], expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import penstock as beam\ndef build():\n    beam.Pipeline() | beam.Map(int('x'))\nbuild()\n"
    (tmp_path / "game.py").write_text(program)
    assert main([each.format(tmp_path) for each in arguments]) == 2
    text = capsys.readouterr().err
    assert [line.rpartition(" in ")[2] for line in lines_of(text)] == expected
    assert not any(each in line for line in lines_of(text) for each in OURS)
    assert bool(expected) is ("Traceback" in text)
    assert tracebacks.FAULT_NOTE not in text


def test_a_command_shows_all_lines_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracebacks, "_asked", False)
    (tmp_path / "game.py").write_text("int('x')")
    assert main(["graph", str(tmp_path / "game.py"), "--full_trace"]) == 2
    assert "program_graphs.py" in capsys.readouterr().err


def test_the_script_of_the_command_is_not_the_programs() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        exec(
            compile("call()", "/usr/bin/penstock", "exec"), {"__name__": "__main__", "call": lambda: half(1)}
        )
    shown = tracebacks.list_lines(caught.value.__traceback__)
    assert "/usr/bin/penstock" not in {line.file for line in shown}
    assert shown[-1].function == "half"
