"""The command ``penstock state``: rows of state as people and programs read them."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.coders import Coder, StrUtf8Coder, VarIntCoder
from penstock.functions.userstate import (
    BagStateSpec,
    CombiningValueStateSpec,
    MapStateSpec,
    ObjectStateSpec,
    OrderedListStateSpec,
    ReadModifyWriteStateSpec,
    SetStateSpec,
    StateSpec,
    TimerSpec,
)
from penstock.machines.cells import Cells, cell_of
from penstock.machines.stateful_keys import StatefulKey
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.window import GlobalWindow, IntervalWindow
from penstock.utils.timestamp import MAX_TIMESTAMP, Timestamp
from penstock_conformance import command, stored_state
from penstock_spark.checkpoints.contract.kept_cells import Unreadable, cell_readers, keep_cells
from penstock_spark.checkpoints.state_table import SetTimer, StateRow, _rows_of_cells

MINUTE = IntervalWindow(1_772_438_400, 1_772_438_460)
ROWS = [
    StateRow(1, "Sum", "red", MINUTE, 12, 2, 0, Timestamp(5), MINUTE.end, None),
    StateRow(1, "Sum", ("blue", 3), GlobalWindow(), "x" * 100, 1, 0, None, MAX_TIMESTAMP, None),
    StateRow(
        2,
        "Count",
        "red",
        GlobalWindow(),
        {"all": ["a"], "last": Unreadable("it is gone")},
        timers=(SetTimer("end", "", True, MINUTE.end), SetTimer("go", "k", False, Timestamp(90))),
    ),
]
TABLE = """\
Sum
  key          window                           state                                     new  next pane
  'red'        2026-03-02 08:00:00 to 08:01:00  12                                        2    2026-03-02 08:01:00
  ('blue', 3)  global                           'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…  1

Count
  key    window  state                                     timers
  'red'  global  all = ['a'], last = <unreadable: it is …  end at 2026-03-02 08:01:00 (event time), \
go[k] at 1970-01-01 00:01:30 (clock)
"""


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """What was asked of the checkpoint, which needs no Spark here."""
    asked = []

    def state_rows(location: str, *, label: str | None, shows_unreadable: bool) -> Iterator[StateRow]:
        asked.append((location, label))
        assert shows_unreadable
        return (row for row in ROWS if label in (None, row.grouping))

    monkeypatch.setattr(stored_state, "state_rows", state_rows)
    return asked


def test_the_state_of_each_step_is_a_table_without_empty_columns(
    capsys: pytest.CaptureFixture[str], asked: list[tuple[str, str | None]]
) -> None:
    assert command.main(["state", "/checkpoints/scores"]) == 0
    out, err = capsys.readouterr()
    assert out == TABLE
    assert err == (
        "some state cannot be read: it is gone\n"
        "  hint: run this in the folder of the stream's program, where its modules can be imported\n"
    )
    assert asked == [("/checkpoints/scores", None)]


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["--step", "Sum"], ["red", ["blue", 3]]),
        (["--key", "red"], ["red", "red"]),
        (["--key", "'red'", "--step", "Count"], ["red"]),
        (["--key", "('blue', 3)"], [["blue", 3]]),
        (["--limit", "1"], ["red"]),
    ],
)
def test_a_step_and_a_key_can_be_chosen_and_json_has_a_line_for_each_row(
    arguments: list[str], keys: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["state", "c", "--json", *arguments]) == 0
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["key"] for row in rows] == keys
    assert ("more rows than 1" in err) == ("--limit" in arguments)
    first = rows[0]
    if first["step"] == "Sum" and first["window"]:
        assert first["window"] == {"start": "2026-03-02T08:00:00Z", "end": "2026-03-02T08:01:00Z"}
        assert (first["state"], first["next_pane"]) == (12, "2026-03-02T08:01:00Z")
    if first["step"] == "Count":
        assert first["state"] == {"all": ["a"], "last": "<unreadable: it is gone>"}
        assert first["timers"][1] == {
            "name": "go",
            "tag": "k",
            "domain": "processing time",
            "at": "1970-01-01T00:01:30Z",
        }


def test_a_row_of_a_dofn_has_its_timers_under_their_own_names_and_not_the_end_of_the_window() -> None:
    spec = TimerSpec("expiry", TimeDomain.WATERMARK)
    settings = {(None, spec.name, ""): (True, 60_000_000, None), (None, "", ""): (True, 90_000_000, None)}
    state = StatefulKey("red", ({None: {"count": b"\x03"}}, settings))
    [row] = _rows_of_cells("Count", 1, "red", state, {}, {})
    assert row.timers == (SetTimer("expiry", "", True, Timestamp(60)),)
    assert str(row.timers[0]) == "expiry at 1970-01-01T00:01:00Z in event time"


def test_a_window_in_a_key_is_shown_in_utc_and_can_be_chosen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ("ann", IntervalWindow(0, 60)), ("ann", MINUTE)
    rows = [StateRow(1, "Rows", key, GlobalWindow(), 1, 1, 0, None, None, None) for key in keys]
    monkeypatch.setattr(stored_state, "state_rows", lambda *_, **__: iter(rows))
    key = "('ann', 2026-03-02 08:00:00 to 08:01:00)"
    assert command.main(["state", "c", "--key", key]) == 0
    assert [line.strip()[: len(key)] for line in capsys.readouterr().out.splitlines()[2:]] == [key]
    assert command.main(["state", "c", "--json", "--key", key]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == [
        "ann",
        {"start": "2026-03-02T08:00:00Z", "end": "2026-03-02T08:01:00Z"},
    ]
    for typed, count in {"ann": 2, "'ann'": 2, "an": 0, "ann'": 0}.items():
        assert command.main(["state", "c", "--json", "--key", typed]) == 0
        assert capsys.readouterr().out.count('"ann"') == count, typed


def test_csv_has_whole_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["state", "c", "--to", "csv", "--step", "Sum"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["state"] for row in rows] == ["12", repr("x" * 100)]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--key", "green"], 0, "there is no state with the key green"),
        (["--key", "green", "--step", "Sum"], 0, "there is no state of 'Sum' with the key green"),
        (["--limit", "0"], 2, "--limit is 0\n  hint: use an integer above 0"),
    ],
)
def test_nothing_found_is_said(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["state", "c", *arguments]) == status
    assert said in "".join(capsys.readouterr())


class Broken(Coder):
    """A coder whose state nobody reads."""

    def encode(self, value: Any) -> bytes:
        return b"?"

    def decode(self, encoded: bytes) -> Any:
        raise ValueError("a question mark is not a value")


def _filled(spec: StateSpec, *values: Any) -> object:
    cells: Cells = {}
    cell: Any = cell_of(spec, cells)
    for value in values:
        match spec:
            case MapStateSpec():
                cell.put(*value)
            case ReadModifyWriteStateSpec() | ObjectStateSpec():
                cell.write(value)
            case _:
                cell.add(value)
    return cells[spec.name]


@pytest.mark.parametrize(
    ("spec", "values", "shown"),
    [
        (ReadModifyWriteStateSpec("one", VarIntCoder()), [7], 7),
        (ObjectStateSpec("one", VarIntCoder()), [{"a": b"b"}], {"a": b"b"}),
        (BagStateSpec("one", StrUtf8Coder()), ["a", "a"], ["a", "a"]),
        (SetStateSpec("one", StrUtf8Coder()), ["a", "b", "a"], {"a", "b"}),
        (MapStateSpec("one", StrUtf8Coder(), VarIntCoder()), [("a", 1), ("b", 2)], {"a": 1, "b": 2}),
        (CombiningValueStateSpec("one", combine_fn=sum), [3, 4], 7),
        (
            OrderedListStateSpec("one", VarIntCoder()),
            [(9, 1), (3, 2)],
            [(Timestamp(3), 2), (Timestamp(9), 1)],
        ),
        (
            ReadModifyWriteStateSpec("one", Broken()),
            [7],
            Unreadable(
                "ValueError: the coder Broken of ReadModifyWriteStateSpec(one) cannot decode what it has encoded: "
                "a question mark is not a value"
            ),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_cell_is_decoded_by_the_coder_that_the_plan_keeps(
    spec: StateSpec, values: list[Any], shown: object
) -> None:
    assert cell_readers(keep_cells([spec]))["one"](_filled(spec, *values)) == shown


def test_a_cell_whose_coder_is_gone_says_so() -> None:
    kept = {"one": base64.b64encode(b"cgame\nMyCoder\n.").decode()}
    assert cell_readers(kept)["one"](b"") == Unreadable("No module named 'game'")
