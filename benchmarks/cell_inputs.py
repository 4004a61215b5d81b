"""The streams of the table: the same events as Parquet, JSON and lines, and the totals that must come out of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from keyed_inputs import JOIN_SECONDS
from stream_inputs import DISORDER_SECONDS, LAST_KEY, LATENESS_SECONDS
from workloads import WINDOW_SECONDS

Totals = dict[str, int]
"""Numbers by name: the name of a group, with the second at which its window starts if it has one."""

USERS, TEAMS = 10_000, 20
KEPT_FROM = 20
"""The filter keeps events with an amount of at least this, of 0 to 99."""

SPARK_SCHEMA = "at timestamp, user string, team string, amount long"
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("user", pa.string()),
        ("team", pa.string()),
        ("amount", pa.int64()),
    ]
)
SIDES = ("orders", "payments")

_FIRST_SECOND = 1_600_000_200
_SECONDS = 2_400
"""The event time from the first event to the last, however many there are."""

_DISORDER_SECONDS_MAX = 60
_LATE_EVERY, _LATE_SECONDS = 200, 300
_FIRST_MODIFIED = 1_600_000_000
_SEED = 7


class Event(NamedTuple):
    """The fields of an event that a Python function sees; a row of a pipeline also has the time."""

    user: str
    team: str
    amount: int


class Valued(NamedTuple):
    """The fields that filter and projection leave of an event."""

    user: str
    team: str
    worth: int


def is_kept(event: Any) -> bool:
    """True if the filter keeps an event; everybody calls it for each."""
    return event.amount >= KEPT_FROM


def valued(event: Any) -> Valued:
    """The projection, as everybody calls it for each event that is kept."""
    return Valued(event.user, event.team, event.amount * 2 + 1)


def parsed(line: str) -> Event:
    """The event of a line, without its time.

    >>> parsed("user7,team3,11,1600000061")
    Event(user='user7', team='team3', amount=11)
    """
    user, team, amount, _ = line.split(",")
    return Event(user, team, int(amount))


def second_of(line: str) -> int:
    """The second of the event of a line."""
    return int(line.rpartition(",")[2])


@dataclass(frozen=True)
class Events:
    """The events of a stream; equal ones are equal in every format."""

    count: int
    users: int = USERS
    is_late: bool = False  # Whether some events come after their window's end.
    seed: int = _SEED

    def table(self) -> pa.Table:
        """All events in their order, without the one that ends the stream."""
        draw = np.random.default_rng(self.seed)
        number = np.arange(self.count)
        seconds = _FIRST_SECOND + number * _SECONDS // self.count
        seconds = seconds - draw.integers(0, _DISORDER_SECONDS_MAX, self.count)
        if self.is_late:
            seconds = seconds - np.where(number % _LATE_EVERY == 0, _LATE_SECONDS, 0)
        users, teams = draw.integers(0, self.users, self.count), draw.integers(0, TEAMS, self.count)
        return _events(
            seconds, _names("user", users), _names("team", teams), draw.integers(0, 100, self.count)
        )

    def make_files(self, folder: Path, form: str, files: int) -> Path:
        """Writes the files of a stream, unless they exist; the last event ends whatever waits for it."""
        late = "-late" if self.is_late else ""
        target = folder / f"{form}-{self.count}-of-{self.users}{late}-{self.seed}-in-{files}"
        if not target.exists():
            write_files(target, form, cut(pa.concat_tables([self.table(), last_event()]), files))
        return target


def last_event() -> pa.Table:
    """The event that ends a stream: it is so much later than all others that whatever waits for them is over."""
    waits = WINDOW_SECONDS + JOIN_SECONDS + DISORDER_SECONDS + LATENESS_SECONDS
    second, name = np.array([_FIRST_SECOND + _SECONDS + waits]), pa.array([LAST_KEY])
    return _events(second, name, name, np.array([99]))


def write_files(target: Path, form: str, parts: Iterator[pa.Table] | list[pa.Table]) -> None:
    """Writes a folder with a file for each part; the folder is there only when all files are."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts):
        path = unfinished / f"part-{number:05}.{form}"
        _WRITERS[form](part, path)
        # Spark reads the oldest file first.
        os.utime(path, (_FIRST_MODIFIED + number, _FIRST_MODIFIED + number))
    unfinished.rename(target)


def cut(table: pa.Table, parts: int) -> list[pa.Table]:
    """So many parts of a table, all but the last of the same size."""
    size = -(-table.num_rows // parts)
    return [table.slice(number * size, size) for number in range(parts)]


def filling_files(folder: Path, keys: int, fill_files: int, batches: int, rows: int) -> Path:
    """Writes files that have each user once, and then files of random users; all have the form of events."""
    target = folder / f"growth-{keys}-in-{fill_files}-{batches}-{rows}"
    if not target.exists():
        draw = np.random.default_rng(_SEED)
        users = [np.arange(keys)[number::fill_files] for number in range(fill_files)]
        users += [draw.integers(0, keys, rows) for _ in range(batches)]
        write_files(target, "parquet", [_of_users(each, number) for number, each in enumerate(users)])
    return target


def empty_files(folder: Path, files: int) -> Path:
    """Writes one file with events, and then files without."""
    target = folder / f"empty-{files}"
    if not target.exists():
        users = [np.arange(1_000), *(np.arange(0) for _ in range(files))]
        write_files(target, "parquet", [_of_users(each, 0) for each in users])
    return target


def _of_users(users: np.ndarray, number: int) -> pa.Table:
    count = len(users)
    seconds = np.full(count, _FIRST_SECOND + number)
    return _events(seconds, _names("user", users), _names("team", users % TEAMS), np.full(count, 99))


def side_files(folder: Path, events: Events, files: int) -> Path:
    """Writes orders and payments, each in its own folder: the users are the orders' numbers, each once."""
    target = folder / f"sides-{events.count}-in-{files}"
    if not target.exists():
        unfinished = target.with_name(f"{target.name}.unfinished")
        for name, table in zip(SIDES, orders_and_payments(events.count), strict=True):
            write_files(unfinished / name, "parquet", cut(pa.concat_tables([table, last_event()]), files))
        unfinished.rename(target)
    return target


def orders_and_payments(count: int) -> tuple[pa.Table, pa.Table]:
    """About as many orders as payments; some orders are never paid, and some in two payments."""
    draw = np.random.default_rng(_SEED)
    number = np.arange(count // 2)
    seconds = _FIRST_SECOND + number * _SECONDS // len(number)
    orders = _events(
        seconds, _names("order", number), _names("team", number % TEAMS), draw.integers(20, 100, len(number))
    )
    paid = np.sort(draw.choice(number, len(number), replace=True))
    paid_seconds = seconds[paid] + draw.integers(0, _DISORDER_SECONDS_MAX, len(paid))
    payments = _events(
        paid_seconds, _names("order", paid), _names("team", paid % TEAMS), draw.integers(20, 100, len(paid))
    )
    return orders, payments


def _events(seconds: np.ndarray, users: pa.Array, teams: pa.Array, amounts: np.ndarray) -> pa.Table:
    at = pa.array(seconds.astype("int64") * 1_000_000).cast(SCHEMA.field("at").type)
    return pa.table([at, users, teams, pa.array(amounts.astype("int64"))], schema=SCHEMA)


def _names(kind: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(kind, pa.array(numbers.astype("int64")).cast(pa.string()), "")


def _seconds(table: pa.Table) -> pa.ChunkedArray:
    return pc.divide(table["at"].cast(pa.int64()), 1_000_000)


def _write_parquet(table: pa.Table, path: Path) -> None:
    # Two tasks read a file, whatever its size.
    parquet.write_table(table, path, row_group_size=max(1, -(-table.num_rows // 2)))


def _write_text(table: pa.Table, path: Path) -> None:
    columns = [table["user"], table["team"], table["amount"], _seconds(table)]
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    csv.write_csv(pa.table(columns, names=["user", "team", "amount", "second"]), path, options)


def _write_json(table: pa.Table, path: Path) -> None:
    at = pc.strftime(table["at"].cast(pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
    amount = table["amount"].cast(pa.string())
    parts = (
        '{"at":"',
        at,
        '","user":"',
        table["user"],
        '","team":"',
        table["team"],
        '","amount":',
        amount,
        "}",
    )
    lines = pc.binary_join_element_wise(*parts, "")
    path.write_text("".join(f"{line}\n" for line in lines.to_pylist()))


_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": _write_parquet,
    "text": _write_text,
    "json": _write_json,
}


@cache
def expected(events: Events, grouping: str) -> Totals:
    """The expected totals of events, without Spark."""
    if grouping == "join":
        return _owed(*orders_and_payments(events.count))
    table = events.table()
    table = table.append_column("start", starts(table["at"], WINDOW_SECONDS))
    if grouping == "stateful":
        return totals(table, "user", None, "amount")
    kept = table.filter(pc.greater_equal(table["amount"], KEPT_FROM))
    kept = kept.append_column("worth", pc.add(pc.multiply(kept["amount"], 2), 1))
    if grouping == "none":
        return {**totals(kept, "team", None, "worth"), "rows": kept.num_rows}
    return totals(kept, "team" if grouping == "teams" else "user", "start", "worth")


def _owed(orders: pa.Table, payments: pa.Table) -> Totals:
    sides = [
        pa.table(
            [each["user"], starts(each["at"], JOIN_SECONDS), each["amount"]], names=["key", "start", name]
        )
        for each, name in ((orders, "price"), (payments, "paid"))
    ]
    pairs = sides[0].join(sides[1], ["key", "start"], join_type="inner")
    owed = pc.subtract(pairs["price"], pairs["paid"])
    return totals(pairs.append_column("total", owed), "key", "start", "total")


def starts(at: pa.ChunkedArray, seconds: int) -> pa.ChunkedArray:
    """The seconds at which the windows of times start."""
    second = pc.divide(at.cast(pa.int64()), 1_000_000)
    return pc.multiply(pc.divide(second, seconds), seconds)


def totals(table: pa.Table, key: str, start: str | None, value: str) -> Totals:
    """The sums of values by key, and by the window's start if there is one; without the last event."""
    by = [key] if start is None else [key, start]
    sums = table.group_by(by).aggregate([(value, "sum")])
    sums = sums.filter(pc.not_equal(sums[key], LAST_KEY))
    names = zip(*(sums[name].to_pylist() for name in by), strict=True)
    return dict(
        zip((" ".join(map(str, name)) for name in names), sums[f"{value}_sum"].to_pylist(), strict=True)
    )


def check(events: Events, grouping: str, written: Path) -> int:
    """Compares the written totals with the expected ones; returns the number of rows, without the rows
    of the event that ends the stream, whose window only some contenders end.
    """
    parts = sorted(path for path in written.rglob("*.parquet") if not path.name.startswith((".", "_")))
    table = pa.concat_tables([parquet.read_table(path) for path in parts])
    if grouping == "none":
        found = {**totals(table, "team", None, "worth"), "rows": table.num_rows - 1}
    elif grouping == "stateful":
        found = totals(table, "key", None, "total")
    else:
        second = pc.divide(table["start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 1_000_000)
        found = totals(table.append_column("second", second), "key", "second", "total")
    wanted = expected(events, grouping)
    if found != wanted:
        wrong = sorted(name for name, _ in found.items() ^ wanted.items())
        raise AssertionError(f"{written.name}: {len(wrong)} totals are wrong, such as that of {wrong[0]!r}")
    name = "team" if grouping == "none" else "key"
    return table.num_rows - pc.sum(pc.equal(table[name], LAST_KEY)).as_py()
