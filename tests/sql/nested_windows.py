"""Random queries whose windows are over the windows of queries inside them, in penstock's language and in DuckDB's."""

from __future__ import annotations

from random import Random

from tests.sql.random_queries import TABLES, Text, Window, sessions, text

KINDS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
FORMS = ("FROM", "GROUP BY")
"""The clauses in which the windows of a query stand."""

_LENGTHS = ((1, 2, 3), (8, 10, 20), (20, 30, 60))
"""The lengths of windows in seconds, from inside: several windows are in one of the next query."""

SHOWN = ("start", "end", "both", "none")
"""The bounds of its windows that a query shows."""


def nested_windows(random: Random) -> tuple[Text, list[tuple[str, str, str]]]:
    """A query over one or two others, each with windows; and for each, from inside: kind, form and what it shows."""
    name = random.choice(list(TABLES))
    number = TABLES[name][2][0]
    rows, time, has_key, features = Text(name, name), "ts", True, []
    levels = random.choice([2, 2, 3])
    for level in range(levels):
        kind, form = random.choice(KINDS), random.choice(FORMS)
        shown = random.choice(SHOWN if level == levels - 1 else SHOWN[:3])
        has_key = has_key and random.random() < 0.35
        rows = _windowed(random, rows, time, number, kind, form, shown, has_key, level)
        features.append((kind, form, shown))
        number = "n"
        time = _name(random.choice(["start", "end"]) if shown == "both" else shown, level)
    return rows, features


def _name(bound: str, level: int) -> str:
    """The name of a bound in a result; some names are those of the bounds of windows in FROM."""
    return f"w{level}_{bound}"


def _windowed(
    random: Random,
    rows: Text,
    time: str,
    number: str,
    kind: str,
    form: str,
    shown: str,
    has_key: bool,
    level: int,
) -> Text:
    """A query of rows in windows of the times in one of their columns."""
    is_table = rows.own in TABLES
    source = rows if is_table else text("({})", rows)
    if kind == "SESSION":
        gap = random.choice(_LENGTHS[level])
        lengths, other = f"INTERVAL '{gap}' SECOND", sessions(source.other, time, ["k"] * has_key, gap)
    else:
        step = random.choice(_LENGTHS[level])
        size = step if kind == "TUMBLE" else step * random.choice([1, 2, 3])
        window = Window(kind, step, size)
        lengths, other = window.lengths, window.rows(source.other, time)
    call = f"{kind}({time}, {lengths})"
    bounds = ("start", "end") if shown == "both" else () if shown == "none" else (shown,)
    columns = {bound: f"window_{bound}" for bound in bounds}
    keys = ["k"] * has_key
    if form == "FROM":
        partition = " PARTITION BY k" if has_key and kind == "SESSION" else ""
        table = f"TABLE {source.own}{partition}"
        own_source, own_columns = f"{kind}({table}, DESCRIPTOR({time}), {lengths})", columns
        grouped = [*keys, "window_start", "window_end"]
        if kind in ("TUMBLE", "HOP") and random.random() < 0.3:
            # One bound tells the other.
            grouped.remove(random.choice(["window_start", "window_end"]))
    else:
        own_source = source.own
        own_columns = {bound: f"WINDOW_{bound.upper()}({call})" for bound in bounds}
        grouped = [*keys, call]
    aggregate = random.choice(["SUM", "COUNT"] if level else ["SUM", "MAX", "MIN", "COUNT"])

    def query(of: str, names: dict[str, str], by: list[str]) -> str:
        shown = [*keys, *(f"{value} AS {_name(bound, level)}" for bound, value in names.items())]
        shown.append(f"{aggregate}({number}) AS n")
        return f"SELECT {', '.join(shown)} FROM {of} AS r GROUP BY {', '.join(by)}"

    return Text(
        query(own_source, own_columns, grouped), query(other, columns, [*keys, "window_start", "window_end"])
    )
