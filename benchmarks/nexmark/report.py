"""Reports the measurements of Nexmark: medians, ratios, their geometric means, and a table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import geometric_mean, median
from typing import Any

from nexmark.queries import QUERIES
from report import Times
from stream_report import markdown

BASE = "native_python"
"""The contender that the others are compared with, where they have none of their own."""

TITLES = {
    "penstock": "penstock",
    BASE: "native, Python parse",
    "native_parquet": "native, Parquet",
    "penstock_sql": "penstock, SQL",
    "native_sql": "Spark SQL, Parquet",
    "penstock_sql_parquet": "penstock, SQL, Parquet",
}
_BASES = {"penstock_sql": "penstock", "native_sql": "native_sql", "penstock_sql_parquet": "native_sql"}
KINDS = ("wall", "cpu")


def base_of(name: str) -> str:
    """The contender that another one is compared with."""
    return _BASES.get(name, BASE)


def summary(query: str, times: Mapping[str, Sequence[Times]]) -> dict[str, Any]:
    """The raw numbers, medians and ratios of a query, as JSON takes them.

    >>> found = summary("q1", {"penstock": [Times(9, 4.0, 8.0)], "native_python": [Times(9, 3.0, 2.0)]})
    >>> found["contenders"]["penstock"]["speed_by_wall"], found["contenders"]["penstock"]["speed_by_cpu"]
    (0.75, 0.25)
    """
    medians = {
        name: {kind: median(getattr(run, f"{kind}_seconds") for run in runs) for kind in KINDS}
        for name, runs in times.items()
    }
    contenders = {}
    for name, runs in times.items():
        numbers: dict[str, Any] = {f"{kind}_seconds": round(medians[name][kind], 3) for kind in KINDS}
        if base_of(name) in medians:
            for kind in KINDS:
                numbers[f"speed_by_{kind}"] = round(medians[base_of(name)][kind] / medians[name][kind], 3)
        contenders[name] = {**numbers, "runs": [asdict(run) for run in runs]}
    return {"title": QUERIES[query].title, "contenders": contenders}


def geometric_means(queries: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The geometric means of each contender's speeds, over the queries that the base has answered as well.

    >>> runs = {"penstock": [Times(9, 4.0, 8.0)], "native_python": [Times(9, 3.0, 2.0)]}
    >>> geometric_means({"q1": summary("q1", runs), "q2": summary("q2", runs)})["penstock"]
    {'speed_by_wall': 0.75, 'speed_by_cpu': 0.25}
    """
    speeds: dict[str, dict[str, list[float]]] = {}
    for found in queries.values():
        for name, numbers in found["contenders"].items():
            for kind in (f"speed_by_{kind}" for kind in KINDS if name != base_of(name)):
                if kind in numbers:
                    speeds.setdefault(name, {}).setdefault(kind, []).append(numbers[kind])
    return {
        name: {kind: round(geometric_mean(each), 3) for kind, each in found.items()}
        for name, found in speeds.items()
    }


def table(mode: str, events: int, queries: Mapping[str, Any]) -> str:
    """The table of a mode, with the geometric means of the speeds below it."""
    names = [name for name in TITLES if any(name in found["contenders"] for found in queries.values())]
    compared = [name for name in names if name != base_of(name) and base_of(name) in names]
    head = [
        "",
        *(f"{TITLES[name]}: s (CPU s)" for name in names),
        *(f"{TITLES[name]}: speed (by CPU)" for name in compared),
    ]
    rows = [
        [
            f"{query} {found['title']}",
            *(_seconds(found, name) for name in names),
            *(_speeds(found["contenders"].get(name, {})) for name in compared),
        ]
        for query, found in queries.items()
    ]
    means = geometric_means(queries)
    rows.append(
        ["geometric mean", *("" for _ in names), *(_speeds(means.get(name, {})) for name in compared)]
    )
    return f"{mode}, {events:,} events:\n\n{markdown(head, rows)}"


def _seconds(found: dict[str, Any], name: str) -> str:
    numbers = found["contenders"].get(name)
    return f"{numbers['wall_seconds']:.1f} ({numbers['cpu_seconds']:.1f})" if numbers else "-"


def _speeds(numbers: Mapping[str, Any]) -> str:
    if "speed_by_wall" not in numbers:
        return "-"
    return f"{numbers['speed_by_wall']:.2f} ({numbers['speed_by_cpu']:.2f})"
