"""The numbers that are kept, and the ratios that goals and tables are made of; what was not measured yet is None."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

Numbers = dict[str, Any]


class Ratio(NamedTuple):
    """The ratio of two times, by the clock on the wall and by the processors; None where that was not measured."""

    wall: float | None
    cpu: float | None


@dataclass(frozen=True)
class Recorded:
    """The files of numbers in a folder."""

    folder: Path

    def numbers(self, name: str) -> Numbers | None:
        """The numbers of a program or comparison."""
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def speed(self, name: str, against: str, entrant: str = "penstock") -> Ratio | None:
        """The speed of an entrant of a comparison, where 1 is as fast as another one."""
        return _speed((self.numbers(name) or {}).get("entrants", {}), entrant, against)

    def stream_speed(self, name: str, workload: str, against: str) -> Ratio | None:
        """The speed of penstock in a workload of streams, where 1 is as fast as another contender."""
        workloads = (self.numbers(name) or {}).get("workloads", {})
        return _speed(workloads.get(workload, {}).get("contenders", {}), "penstock", against)

    def row_speed(self, row: str) -> Ratio | None:
        """The speed of a row of the table of streams, where 1 is as fast as its twin."""
        return _paired_speed((self.numbers("stream_table") or {}).get("rows", {}).get(row))

    def nexmark_speed(self, mode: str) -> Ratio | None:
        """The geometric means of all queries' speeds, where 1 is as fast as PySpark with the same parse."""
        queries = (self.numbers(f"nexmark_{mode}") or {}).get("queries", {})
        found = [query["contenders"].get("penstock", {}) for query in queries.values()]
        speeds = [each for each in found if "speed_by_wall" in each]
        if not speeds:
            return None
        return Ratio(
            *(geometric_mean(each[f"speed_by_{kind}"] for each in speeds) for kind in ("wall", "cpu"))
        )

    def sql_speed(self, part: str, work: str) -> Ratio | None:
        """The speed of work in SQL, where 1 is as fast as the other side."""
        return _paired_speed((self.numbers("sql_speed") or {}).get(part, {}).get(work))

    def paired_speed(self, name: str, work: str) -> Ratio | None:
        """The speed of work that was timed in turns, where 1 is as fast as the other side."""
        return _paired_speed((self.numbers(name) or {}).get(work))

    def planning(self, seconds: float) -> Ratio | None:
        """The ratio of the time that planning 1,000 queries takes to `seconds`."""
        found = (self.numbers("sql_speed") or {}).get("planning")
        if found is None:
            return None
        scale = 1_000 / found["queries"] / seconds
        return Ratio(*(found[f"{kind}_seconds"] * scale for kind in ("wall", "cpu")))

    def latency(self, against: str) -> Ratio | None:
        """The ratio of penstock's median latency, from a socket to the sink, to another contender's."""
        contenders = (self.numbers("stream_latency") or {}).get("contenders", {})
        medians = {
            name: found["median_millis"]
            for name, each in contenders.items()
            for found in each
            if found["source"] == "socket"
        }
        return (
            Ratio(medians["penstock"] / medians[against], None)
            if {"penstock", against} <= set(medians)
            else None
        )

    def times_as_long(self, name: str, against: str, kinds: tuple[str, str]) -> Ratio | None:
        """The ratio of penstock's time to another contender's, by the names of two medians or means."""
        contenders = (self.numbers(name) or {}).get("contenders", {})
        if not {"penstock", against} <= set(contenders):
            return None
        return Ratio(*(contenders["penstock"][kind] / contenders[against][kind] for kind in kinds))


def _paired_speed(found: Numbers | None) -> Ratio | None:
    return found and Ratio(*(found[f"speed_by_{kind}"] for kind in ("wall", "cpu")))


def _speed(found: Numbers, entrant: str, against: str) -> Ratio | None:
    if not {entrant, against} <= set(found):
        return None
    return Ratio(*(found[against][kind] / found[entrant][kind] for kind in ("wall_seconds", "cpu_seconds")))
