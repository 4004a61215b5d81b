"""Writes the recorded numbers into the pages that show them, each table between two comments that name it.

Run it with ``python benchmarks/page.py`` after a recorded run; a test checks that the pages show these numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import latency
import report
import sql_speed
import startup
import stream_comparison
import stream_empty_batches
import stream_latency
import stream_peers
import stream_shards
import stream_state
import stream_table
import tpch
from comparisons import COMPARISONS
from goals import goals_table, summary_table
from options import ROOT
from outcome import FOLDER
from recorded import Numbers, Recorded
from stream_report import markdown

PAGE = ROOT / "docs" / "performance.md"
PAGES = (ROOT / "README.md", PAGE)

_TABLE = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end of the table -->)", re.DOTALL)
_NOT_YET = "Not measured yet: run `python benchmarks/{program}`."


def rendered(page: str, recorded: Recorded) -> str:
    """Returns the page with tables of the recorded numbers."""

    def filled(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TABLES[match[2]](recorded)}\n\n{match[3]}"

    return _TABLE.sub(filled, page)


def _program(name: str, program: str, shown: Callable[[Numbers], str]) -> Callable[[Recorded], str]:
    """Shows the numbers of one program, if it has any."""

    def table(recorded: Recorded) -> str:
        numbers = recorded.numbers(name)
        return shown(numbers) if numbers else _NOT_YET.format(program=program)

    return table


def _contenders(shown: Callable[[Numbers], str]) -> Callable[[Numbers], str]:
    return lambda numbers: shown(numbers["contenders"])


def _workloads(numbers: Numbers) -> str:
    return "\n\n".join(map(stream_comparison.table, numbers["workloads"].values()))


def _twins(recorded: Recorded) -> str:
    """Compares runs on difficult data with runs on harmless data of the same amount."""
    rows = []
    for name in _WITH_TWINS:
        numbers = recorded.numbers(name)
        if numbers:
            twin, *others = numbers["entrants"].values()
            rows += [
                (
                    f"{numbers['title']}: {other['title']}",
                    twin["title"],
                    *(f"{other[kind] / twin[kind]:.2f}" for kind in ("wall_seconds", "cpu_seconds")),
                    f"{other['peak_megabytes'] / twin['peak_megabytes']:.2f}",
                )
                for other in others
            ]
    if not rows:
        return _NOT_YET.format(program="run.py")
    return markdown(("work", "compared with", "ratio of wall s", "ratio of CPU s", "ratio of memory"), rows)


def _windows(numbers: Numbers) -> str:
    head = ("one key", "1 open: µs per element", f"{numbers['windows']:,} open", "ratio")
    cases = [(case, found) for case, found in numbers.items() if isinstance(found, dict) and "ratio" in found]
    rows = [
        (case, *(f"{found[kind]:.1f}" for kind in ("few_micros", "many_micros")), f"{found['ratio']:.2f}")
        for case, found in cases
    ]
    return markdown(head, rows)


def _construction(numbers: Numbers) -> str:
    rows = [
        (shape, *(f"{numbers[shape][kind]:.3f}" for kind in ("build_seconds", "explain_seconds")))
        for shape in ("chain", "branches")
    ]
    return markdown((f"{numbers['transforms']:,} transforms", "built: s", "explained: s"), rows)


def _nexmark(numbers: Numbers) -> str:
    """Compares the queries in penstock and in PySpark by hand with the same parse."""

    def seconds(found: Numbers, name: str) -> str:
        return f"{found['contenders'][name]['wall_seconds']:.2f}" if name in found["contenders"] else ""

    def speed(found: Numbers, kind: str) -> str:
        value = found["contenders"]["penstock"].get(f"speed_by_{kind}")
        return "" if value is None else f"{value:.2f}"

    rows = [
        (
            f"{query} {found['title']}",
            *(seconds(found, name) for name in ("native_python", "penstock")),
            *(speed(found, kind) for kind in ("wall", "cpu")),
        )
        for query, found in numbers["queries"].items()
    ]
    table = markdown(("query", "by hand: s", "penstock: s", "speed by wall", "by CPU"), rows)
    return f"{numbers['mode']}, {numbers['events']:,} events:\n\n{table}"


def _nexmark_sql(numbers: Numbers) -> str:
    """Compares the queries in SQL with the pipelines in Python, and over Parquet with Spark SQL."""
    pairs = (("penstock", "penstock_sql"), ("native_sql", "penstock_sql_parquet"))
    heads = {"penstock": ("in Python: s", "in SQL: s"), "native_sql": ("Spark SQL: s", "SQL, Parquet: s")}
    found = next(iter(numbers["queries"].values()))["contenders"]
    shown = [pair for pair in pairs if set(pair) <= set(found)]

    def cells(contenders: Numbers, base: str, name: str) -> tuple[str, ...]:
        seconds = (f"{contenders[each]['wall_seconds']:.2f}" for each in (base, name))
        return *seconds, *(f"{contenders[name][f'speed_by_{kind}']:.2f}" for kind in ("wall", "cpu"))

    rows = [
        (
            f"{query} {found['title']}{'' if _is_whole(found) else ' *'}",
            *(cell for pair in shown for cell in cells(found["contenders"], *pair)),
        )
        for query, found in numbers["queries"].items()
    ]
    means = numbers["geometric_means"]
    rows.append(
        (
            "geometric mean",
            *(
                cell
                for _, name in shown
                for cell in ("", "", *(f"{means[name][f'speed_by_{kind}']:.2f}" for kind in ("wall", "cpu")))
            ),
        )
    )
    head = ("query", *(cell for base, _ in shown for cell in (*heads[base], "speed by wall", "by CPU")))
    return f"{numbers['mode']}, {numbers['events']:,} events:\n\n{markdown(head, rows)}"


def _is_whole(found: Numbers) -> bool:
    """True if Spark alone computes a query over Parquet, if it is measured there."""
    over_parquet = found["contenders"].get("penstock_sql_parquet")
    return over_parquet is None or over_parquet["computed_by"] == "Spark alone"


def _machine(recorded: Recorded) -> str:
    """Lists the machine and the versions that the numbers come from."""
    found = {
        tuple((recorded.numbers(path.stem) or {})["machine"].items())
        for path in sorted(recorded.folder.glob("*.json"))
    }
    rows = sorted({(name, str(value)) for machine in found for name, value in machine if name != "cores"})
    return "\n".join(f"- {name}: {value}" for name, value in rows)


_WITH_TWINS = ("keys_combined", "keys_grouped", "many_windows", "large_values", "wide_rows")
_STREAMS: dict[str, Callable[[Numbers], str]] = {
    "stream_replay": _workloads,
    "stream_stateful": _workloads,
    "stream_join": _workloads,
    "stream_latency": _contenders(stream_latency.table),
    "stream_empty_batches": _contenders(stream_empty_batches.table),
    "stream_shards": _contenders(stream_shards.table),
    "stream_state": _contenders(stream_state.table),
    "stream_peers": lambda numbers: stream_peers.table(numbers["peers"]),
    "stream_table": lambda numbers: stream_table.table(numbers["rows"]),
}

TABLES: dict[str, Callable[[Recorded], str]] = {
    "goals": goals_table,
    "summary": summary_table,
    "machine": _machine,
    "twins": _twins,
    "open_windows": _program("open_windows", "open_windows.py", _windows),
    "construction": _program("construction", "construction.py", _construction),
    "latency": _program("latency", "latency.py", _contenders(latency.table)),
    "startup": _program("startup", "startup.py", _contenders(startup.table)),
    **{
        each.name: _program(each.name, f"run.py {each.name}", report.table)
        for each in COMPARISONS
        if each.name not in _WITH_TWINS
    },
    **{name: _program(name, f"{name}.py", shown) for name, shown in _STREAMS.items()},
    "sql_pairs": _program("sql_speed", "sql_speed.py", sql_speed.pairs_table),
    "sql_planning": _program("sql_speed", "sql_speed.py", sql_speed.planning_table),
    "tpch": _program("tpch", "tpch.py", lambda numbers: tpch.table(numbers["queries"])),
    **{
        f"nexmark_sql_{mode}": _program(
            f"nexmark_sql_{mode}", f"nexmark/run.py --sql --mode {mode}", _nexmark_sql
        )
        for mode in ("batch", "streaming")
    },
    **{
        f"nexmark_{mode}": _program(f"nexmark_{mode}", f"nexmark/run.py --mode {mode}", _nexmark)
        for mode in ("batch", "streaming")
    },
}
"""The tables by their names on the pages."""


def main() -> None:
    """Writes the pages."""
    for page in PAGES:
        page.write_text(rendered(page.read_text(), Recorded(FOLDER)))
        print(f"written: {page}")


if __name__ == "__main__":
    main()
