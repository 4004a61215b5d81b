"""Rewrites Spark's part of a checkpoint for another number of shards, other levels or other sources.

Spark's offsets and logs of sources go to a new folder unchanged, each to the place that the source has now. The
state is divided into pieces (`penstock_spark.stream.resharding.moved_pages`). A query with the new operators reads
them in one micro-batch. The result gets the number of the pipeline's next micro-batch, so the pipeline's own
query continues from there.

Nothing refers to the new folder before it is whole, and nothing in the old one changes. A run that dies in between
leaves a folder that the next run deletes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.error import RunnerError
from penstock_spark.checkpoints.contract.compare import Signature
from penstock_spark.checkpoints.contract.operators import levels_of_operators
from penstock_spark.checkpoints.contract.signature import WAITS
from penstock_spark.checkpoints.spark_state import check_readable, pages_of_operator
from penstock_spark.files.file_store import SparkFiles, files_of_spark
from penstock_spark.session.backends import backend_of, is_local_session, map_in_arrow
from penstock_spark.session.shard_keys import shard_keys
from penstock_spark.session.worker_socket import acknowledge_each
from penstock_spark.shipping.import_paths import import_like_driver, ship_packages, worker_sys_path
from penstock_spark.stream.level_processor import ROWS, SHARD_STATE
from penstock_spark.stream.resharding.merged_headers import Resharding, merged_headers
from penstock_spark.stream.resharding.moved_pages import Waits, names_in, pieces, waits_of
from penstock_spark.stream.resharding.seed_processor import SeedProcessor, seed_of_header, seed_of_piece
from penstock_spark.stream.shards.waiting import STATE
from penstock_spark.stream.shards.waiting_state import waiting_label
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.tasks import HEADERS, header_key

HEARTBEAT_SLOT, COMMANDS_SLOT = "<heartbeat", "<commands"
"""The sources of a query that no step of the pipeline has."""

SEEDS = "-seeds"
"""The end of the names of folders that hold the pieces of the state."""

_PLAYED = ("RecordedStream", "InlineValues")
"""The kinds of sources whose events the program lists, which Spark does not read in recorded time."""

_NOWHERE = (0, 0)
"""The level and the shard of a row that no operator takes: a query without any row would not begin."""

_SCHEMA = pa.schema([("level", pa.int32()), ("shard", pa.int32()), ("payload", pa.binary())])
# So a micro-batch stores one file for each shard, with everything.
_SNAPSHOTS = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"}
_STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_SHUFFLES = "spark.sql.shuffle.partitions"
_PAGE = ("shard", "grouping", "page", "content")
_TALLY = ("grouping", "number", "total")
_OFFSETS = "v1"
_HINT = "continue with the number of shards, the levels and the sources that the checkpoint has"
_SEEDS_VERSION = 1
"""Spark's number of the state after the first micro-batch of a query."""


def resharding_of(
    old: Signature,
    after: int,
    dropped: Sequence[str] = (),
    removed: Sequence[str] = (),
    waiting_anew: Collection[str] = (),
) -> Resharding:
    """Returns the division of a plan's state into another number of shards.

    Args:
        old: The plan's signature.
        after: The new number of shards.
        dropped: The groupings whose state is given up.
        removed: The sources that are no longer read.
        waiting_anew: The steps with state whose watermarks wait for a source that is added.
    """
    groupings = {label: grouping for level in old["levels"] for label, grouping in level.items()}
    kept = {label: grouping for label, grouping in groupings.items() if label not in dropped}
    waiting = {label for label, grouping in kept.items() if grouping["combine"] == WAITS}
    waiting_pages = {*waiting, *map(waiting_label, kept.keys() - waiting)}
    return Resharding(
        old["shards"],
        after,
        frozenset(groupings),
        frozenset(waiting),
        frozenset(waiting_pages),
        frozenset({*kept, *waiting_pages}),
        frozenset(removed),
        frozenset(waiting_anew),
    )


def find_dependent_steps(plan: Signature, sources: Collection[str]) -> set[str]:
    """Returns the steps with state whose watermarks depend on one of some sources, also through other steps.

    >>> sums, totals, others = {"feeds": ["A", "B"]}, {"feeds": ["Sums"]}, {"feeds": ["B"]}
    >>> sorted(find_dependent_steps({"levels": [{"Sums": sums, "Others": others}, {"Totals": totals}]}, ["A"]))
    ['Sums', 'Totals']
    """
    found: set[str] = set()
    for level in plan["levels"]:
        found |= {label for label, step in level.items() if not {*sources, *found}.isdisjoint(step["feeds"])}
    return found


def slots_of(plan: Signature) -> list[str]:
    """Returns the sources of a query for Spark, in its order: the heartbeat, the commands, and those that it reads.

    >>> slots_of({"heartbeat": "none", "clock": "live", "levels": [{}], "sources": [{"label": "A", "kind": "files"}]})
    ['<commands', 'A']
    """
    is_recorded = plan["clock"] == "recorded"
    read = [each for each in plan["sources"] if not (is_recorded and each["kind"] in _PLAYED)]
    first = [] if plan["heartbeat"] == "none" else [HEARTBEAT_SLOT]
    commands = [COMMANDS_SLOT]
    waits_for_end = any(native["waits_for_end"] for native in plan.get("native", {}).values())
    return [
        *first,
        *(commands if plan["levels"] else []),
        *(each["label"] for each in read),
        *(commands if waits_for_end else []),
    ]


def operators_of(plan: Signature) -> int:
    """Returns the number of operators with state in Spark: for levels, and for Spark's aggregates."""
    return len(levels_of_operators(plan)) + len(plan.get("native", {}))


def must_rewrite(old: Signature, new: Signature) -> bool:
    """True if Spark's part of the checkpoint of one plan has to be rewritten for another."""
    return (
        old["shards"] != new["shards"]
        or levels_of_operators(old) != levels_of_operators(new)
        or slots_of(old) != slots_of(new)
    )


@dataclass(frozen=True)
class Rewriting:
    """Moves the part of a checkpoint that Spark writes from one folder to a new one, for another plan."""

    spark: SparkSession
    old: Signature
    new: Signature
    source: str  # The old folder.
    target: str  # The new folder, which does not exist.
    last: int  # The number of the last finished micro-batch.

    def run(self) -> None:
        seeds = f"{self.target}{SEEDS}"
        files = self._files
        files.make(self.target)
        # Before the first micro-batch has ended, no state exists.
        if self.new["levels"] and self.last >= 0:
            if self.old["levels"]:
                check_readable(self.spark, self.source)
            self._stage(seeds)
            self._seed(seeds)
            self._renumber()
            files.delete(seeds)
        self._copy_logs()
        if self.last >= 0:
            self._check()

    @cached_property
    def _files(self) -> SparkFiles:
        return files_of_spark(self.spark, self.target)

    @cached_property
    def _division(self) -> Resharding:
        before, now = ({source["label"] for source in plan["sources"]} for plan in (self.old, self.new))
        waiting_anew = find_dependent_steps(self.new, now - before)
        return resharding_of(self.old, self.new["shards"], self.new["dropped"], [*before - now], waiting_anew)

    def _stage(self, seeds: str) -> None:
        """Writes the state as rows for the new operators."""
        rows = [(*_NOWHERE, b"")]
        keys = shard_keys(self.new["shards"])
        if not is_local_session(self.spark):
            ship_packages(self.spark)
        frames = []
        for level in self._levels:
            frame = self._pages(self.source, self.old, level)
            headers, waits = self._known(frame, level)
            if not headers:
                continue
            for key, header in zip(keys, merged_headers(headers, self._division), strict=True):
                rows.append((level, key, seed_of_header(header, waits)))
            labels = self._labels(level)
            function = _cutting(level, labels, self._division, waits, worker_sys_path(self.spark))
            frames.append(map_in_arrow(frame, function, ROWS))
        columns = zip(zip(*rows, strict=True), _SCHEMA, strict=True)
        told = pa.Table.from_arrays([pa.array(own, field.type) for own, field in columns], schema=_SCHEMA)
        # PySpark's createDataFrame would make the runner's session the user's active one.
        frames.insert(0, map_in_arrow(self.spark.range(0, 1, 1, 1), _giving(told), ROWS))
        reduce(DataFrame.unionAll, frames).write.parquet(seeds)

    @property
    def _levels(self) -> range:
        """The numbers of the levels that both plans have."""
        return range(1, min(len(self.old["levels"]), len(self.new["levels"])) + 1)

    def _labels(self, level: int) -> frozenset[str]:
        """Returns the labels of the state of a level that is not given up."""
        own = self.old["levels"][level - 1]
        return self._division.kept & {*own, *map(waiting_label, own)}

    def _pages(self, location: str, plan: Signature, level: int) -> DataFrame:
        """Returns the pages of the operator that has a level, with their shards' keys."""
        [operator] = [number for number, own in enumerate(levels_of_operators(plan)) if level in own]
        return pages_of_operator(self.spark, location, operator)

    def _known(self, frame: DataFrame, level: int) -> tuple[list[Header], dict[str, Waits]]:
        """Returns what the driver has to know of a level: the headers, and the numbers of waiting pages."""
        division, keys = self._division, shard_keys(self.old["shards"])
        [operator] = [own for own in levels_of_operators(self.old) if level in own]
        header, waiting = header_key(operator.index(level)), self._labels(level) & division.waiting_pages
        is_known = frame["grouping"].isin(HEADERS, *waiting) & frame["page"].isin(header[1], STATE)
        found = {
            ((row.grouping, row.page), keys.index(row.shard)): bytes(row.content)
            for row in frame.where(is_known).collect()
        }
        headers = [found.get((header, shard)) for shard in range(division.before)]
        if not any(headers):
            return [], {}
        waits = {
            label: waits_of([found.get(((label, STATE), shard)) for shard in range(division.before)])
            for label in waiting
            if any(((label, STATE), shard) in found for shard in range(division.before))
        }
        return [Header.decoded(header) for header in headers], waits

    def _seed(self, seeds: str) -> None:
        """Lets the new operators take the state in, in one micro-batch."""
        # The pipeline's query reads the state in the form that its offsets name.
        noted = _metadata_of(self._files.read(f"{self.source}/offsets/{self.last}") or b"")["conf"]
        if noted.get(_STATE_FORMAT, "1") != "1":
            raise _unknown(f"the format {noted[_STATE_FORMAT]} of its state")
        conf = {**noted, **_SNAPSHOTS, _STATE_FORMAT: "1", _SHUFFLES: str(self.new["shards"])}
        session = backend_of(self.spark).clone(conf)
        frame, reports = session.readStream.schema(ROWS).parquet(seeds), backend_of(session).reports()
        for levels in reversed(levels_of_operators(self.new)):
            sys_path = worker_sys_path(self.spark)
            processor = SeedProcessor(levels, self.new["shards"], sys_path)
            frame = reports.transform_with_state(frame, partial(_silent, processor), ROWS, SHARD_STATE)
        writer = frame.writeStream.format("noop").option("checkpointLocation", self.target)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    def _renumber(self) -> None:
        """Renumbers what the first micro-batch has stored, to the number of the pipeline's next one."""
        files, wanted = self._files, self.last + 1
        shards = itertools.product(range(len(levels_of_operators(self.new))), range(self.new["shards"]))
        for operator, shard in shards if wanted != _SEEDS_VERSION else ():
            folder = f"{self.target}/state/{operator}/{shard}"
            for name in files.names(folder, f"{_SEEDS_VERSION}.zip"):
                renamed = f"{wanted}{name.removeprefix(str(_SEEDS_VERSION))}"
                files.rename(f"{folder}/{name}", f"{folder}/{renamed}")

    def _copy_logs(self) -> None:
        """Copies what Spark knows of its sources, to the places that they have now."""
        files, before, after = self._files, slots_of(self.old), slots_of(self.new)
        for name in ("offsets", "commits", "sources"):
            files.delete(f"{self.target}/{name}")
            files.make(f"{self.target}/{name}")
        places = [before.index(slot) if slot in before else None for slot in after]
        for new, old in enumerate(places):
            if old is not None and files.exists(f"{self.source}/sources/{old}"):
                files.copy(f"{self.source}/sources/{old}", f"{self.target}/sources/{new}")
        # Spark reads the last two; one that is planned and not finished is repeated with the same input.
        for name in files.names(f"{self.source}/offsets"):
            if name.isdecimal() and int(name) >= self.last - 1:
                content = files.read(f"{self.source}/offsets/{name}") or b""
                files.write(
                    f"{self.target}/offsets/{name}", move_offsets(content, places, self.new["shards"])
                )
        if self.last >= 0:
            files.copy(f"{self.source}/commits/{self.last}", f"{self.target}/commits/{self.last}")
        files.delete(f"{self.target}/metadata")
        files.copy(f"{self.source}/metadata", f"{self.target}/metadata")

    def _check(self) -> None:
        """Compares the state that Spark finds in the new folder with the old one, before anything refers to it."""
        for level in self._levels:
            before, after = (
                self._tally(location, plan, level)
                for location, plan in ((self.source, self.old), (self.target, self.new))
            )
            if before != after:
                what = f"Spark does not find the state of level {level} that it wrote: it finds {after}, not {before}"
                raise RunnerError(what, where=f"in {self.target}", hint=_HINT)

    def _tally(self, location: str, plan: Signature, level: int) -> dict[str, tuple[int, int]]:
        """Returns, for each grouping, the number of keys (in each window), and a sum by which keys differ."""
        pages = self._pages(location, plan, level)
        function = _tallying(self._labels(level), self._division, worker_sys_path(self.spark))
        told = map_in_arrow(pages, function, "grouping string, number long, total long")
        sums = told.groupBy("grouping").sum("number", "total").collect()
        # A step for which nothing waits any more has a page that says so, and needs none in the new folder.
        return {row[0]: (row[1], row[2]) for row in sums if row[1]}


def _silent(processor: SeedProcessor, sink: object) -> SeedProcessor:
    """Returns an operator that reports nothing."""
    return processor


def _giving(told: pa.Table) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that replaces the one row of a frame by a table."""
    content = told.to_batches()

    def giving(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from content

    return giving


def _cutting(
    level: int,
    labels: frozenset[str],
    division: Resharding,
    waits: Mapping[str, Waits],
    sys_path: tuple[str, ...],
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns the function for Spark's ``mapInArrow`` from pages to rows for the new operators."""
    before, after = shard_keys(division.before), shard_keys(division.after)

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        for key, label, number, content in _keep_pages(records, labels, sys_path):
            for shard, piece in pieces(division, waits, before.index(key), label, number, content):
                row = level, after[shard], seed_of_piece(piece)
                columns = zip(row, _SCHEMA, strict=True)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([value], field.type) for value, field in columns], schema=_SCHEMA
                )

    return run


def _tallying(
    labels: frozenset[str], division: Resharding, sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns the function for Spark's ``mapInArrow`` from pages to the number of their keys, and the sum of these."""

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        for _, label, number, content in _keep_pages(records, labels, sys_path):
            names = names_in(division, label, number, content)
            row = label, len(names), sum(map(crc32, names))
            yield pa.RecordBatch.from_arrays([pa.array([value]) for value in row], [*_TALLY])

    return run


_Page = tuple[int, str, int, bytes]
"""The key of the page's shard, the label of its grouping, its number, and its content."""


def _keep_pages(records: Iterator[Any], labels: Set[str], sys_path: tuple[str, ...]) -> Iterator[_Page]:
    """Yields the pages of some groupings."""
    import_like_driver(sys_path)
    for record in acknowledge_each(records):
        for row in zip(*(record.column(name).to_pylist() for name in _PAGE), strict=True):
            if row[1] in labels:
                yield row


def move_offsets(content: bytes, places: Sequence[int | None], shards: int) -> bytes:
    r"""Spark's offsets of a micro-batch, in which each source has another place, or is new.

    >>> move_offsets(b'v1\n{"conf":{"spark.sql.shuffle.partitions":"2"}}\n4\n7', [1, None, 0], 3)
    b'v1\n{"conf": {"spark.sql.shuffle.partitions": "3"}}\n7\n-\n4'
    """
    noted = _metadata_of(content)
    noted["conf"][_SHUFFLES] = str(shards)
    offsets = content.decode().split("\n")[2:]
    moved = ["-" if place is None else offsets[place] for place in places]
    return "\n".join([_OFFSETS, json.dumps(noted), *moved]).encode()


def _metadata_of(offsets: bytes) -> Any:
    """Returns the metadata that Spark stores with the offsets of a micro-batch."""
    version, metadata, *_ = offsets.decode().split("\n")
    if version != _OFFSETS:
        raise _unknown(f"the format {version} of its offsets")
    return json.loads(metadata)


def _unknown(what: str) -> RunnerError:
    return RunnerError(
        f"Spark's part of the checkpoint cannot be rewritten: penstock does not know {what}", hint=_HINT
    )
