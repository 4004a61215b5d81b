"""A streaming query without Spark: the real plan and levels, micro-batch by micro-batch, state in dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import cloudpickle
import pyarrow as pa

from penstock.graph import Read
from penstock.metrics.execution import ELEMENTS, merge_snapshots, take_out
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.checkpoints.resharding import resharding_of
from penstock_spark.lowering.level_programs import level_program
from penstock_spark.lowering.readings import reading_spec
from penstock_spark.lowering.recorded import record_input
from penstock_spark.lowering.stream_sink import stream_sinks
from penstock_spark.plan.clock_waits import clock_waits
from penstock_spark.reports.metrics import Watermarks, take_snapshots
from penstock_spark.runner import SparkRunner
from penstock_spark.sources.scan import Part
from penstock_spark.stream.resharding.merged_headers import Resharding, merged_headers
from penstock_spark.stream.resharding.moved_pages import Assembly, names_in, pieces, waits_of
from penstock_spark.stream.shards.levels import Done, play_shard
from penstock_spark.stream.shards.waiting import STATE
from penstock_spark.stream.shards.waiting_state import waiting_label
from penstock_spark.stream.sources.played_sources import play_sources
from penstock_spark.stream.sources.reading import SourceTask, StreamReader
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.transport.control import Command, heartbeat
from penstock_spark.stream.transport.inbox import Received
from penstock_spark.worker.batch import decode_page, dumps, loads
from tests.runner.plain_runner import views_of
from tests.shards.shard_streams import DictStore


class Placed(NamedTuple):
    """Elements with their place in the source, such as the file and the offset in it."""

    place: tuple[Any, ...]
    values: list[Any]


class ToyQuery:
    """A pipeline as a query, of which the caller makes one micro-batch after the other.

    Args:
        pipeline: The pipeline; a source that is read yields the values that `batch` gets for its label.
        mode: ``streaming`` or ``micro_batch``.
        shards: The number of shards.
        events_per_batch: As in the options.
        without: The optimisations that are switched off, as in the options.
        recorded: How many elements and panes of each grouping are recorded.
        watched: Whether elements and panes are counted for a view.
    """

    def __init__(
        self,
        pipeline: Any,
        mode: str = "streaming",
        shards: int = 2,
        events_per_batch: int | None = None,
        without: Iterable[str] = (),
        recorded: int = 0,
        watched: bool = False,
    ) -> None:
        self._made = pipeline, mode, events_per_batch, tuple(without), recorded, watched
        settings = PipelineOptions([f"--mode={mode}"], without=[*without]).view_as(SparkOptions)
        self.plan = SparkRunner().compiled(pipeline.to_graph(), settings).plan
        self.shards = shards
        context: Any = SimpleNamespace(
            run="toy",
            seed="toy",
            partitions=shards,
            dumps=cloudpickle.dumps,
            without=settings.switched_off(),
            recorded=recorded,
            watched=watched,
            kept_plan=None,
        )
        sinks = stream_sinks(self.plan, context.without)
        self._inside = {sink.level for sink in sinks if sink.is_inside}
        self.snapshot: Any = {}
        self._views: dict[int, Any] = {}
        if self.plan.views is not None:
            computed = views_of(self.plan)
            self._views = computed.views
            self._count(take_snapshots(computed.metrics, computed.run))
        timeline, recorded = record_input(self.plan, events_per_batch)
        self.timeline = timeline

        def program(part: Any, reading: Any = None) -> bytes:
            made = level_program(self.plan, part, timeline, recorded, reading, context, sinks)
            return cloudpickle.dumps(made)

        self._played = program(self.plan.played) if self.plan.played else None
        self._readings = {part.roots[0].label: program(part, _reading(part)) for part in self.plan.readings}
        self._levels = [program(level) for level in self.plan.levels]
        self._waits_for_clock = bool(clock_waits(self.plan))
        self._headers: dict[tuple[int, int], bytes] = {}
        self._stores: dict[tuple[int, int, str], DictStore] = {}
        self.number = 0
        self._told: dict[tuple[int, int], Any] = {}

    def batch(
        self,
        read: Mapping[str, Iterable[list[Any] | list[Placed]]] = {},
        clock_micros: int = 0,
        commands: Iterable[tuple[str, str]] = (),
    ) -> dict[str, list[Any]]:
        """One micro-batch.

        Args:
            read: For each source that is read, by label, what each of its tasks reads: elements, or elements from
                several places.
            clock_micros: The machine's clock.
            commands: What the driver asks for.

        Returns:
            What goes to each sink, by label.
        """
        rows: list[Any] = []
        if self._played is not None and self.number < self.timeline.batches:
            played, snapshot = play_sources(loads(self._played), self.number, self._views)
            rows += played
            self._count(snapshot)
        task = 0
        for label, tasks in read.items():
            for values in tasks:
                rows += self._task(loads(self._readings[label]), task, values, clock_micros)
                task += 1
        asked = [Command(clock_micros, name, argument) for name, argument in commands]
        for number, program in enumerate(self._levels, 1):
            rows = self._level(number, program, rows, clock_micros, asked)
        self.number += 1
        found: dict[str, list[Any]] = {sink.label: [] for sink in self.plan.sinks}
        for level, _, page in rows:
            values = loads(page) if level in self._inside else decode_page(page).values
            found[self.plan.sinks[-level - 1].label] += values
        return found

    def _task(self, program: Any, task: int, values: list[Any], clock_micros: int) -> list[Any]:
        source = SourceTask(program, task, self.number, self._views)
        placed = values if values and isinstance(values[0], Placed) else [Placed((), values)]
        pages, clocks = [cloudpickle.dumps(tuple(one)) for one in placed], [clock_micros] * len(placed)
        record = pa.RecordBatch.from_pydict({"value": pages, "clock": pa.array(clocks, pa.int64())})
        rows = [row for some in source.run(iter([record])) for row in some]
        self._count(source.snapshot())
        return rows

    def _level(
        self, number: int, program: bytes, rows: list[Any], clock_micros: int, commands: list[Command]
    ) -> list[Any]:
        given = [row for row in rows if row[0] != number]
        for shard in range(self.shards):
            messages = [loads(payload) for level, to, payload in rows if (level, to) == (number, shard)]
            if number == 1 and self._waits_for_clock:
                messages.append(heartbeat(clock_micros))
            if not (messages or commands):
                continue
            header = Header.decoded(self._headers.get((number, shard)))

            def store_of(label: str, shard: int = shard) -> DictStore:
                return self._stores.setdefault((number, shard, label), DictStore())

            received = Received(messages, commands)
            playing = play_shard(loads(program), shard, received, header, store_of, self._views)
            done = yield_into(given, playing)
            self._headers[number, shard] = header.encoded()
            self._count(done.snapshot)
            self._told[number, shard] = done.watermarks
        return given

    def divided(self, shards: int) -> ToyQuery:
        """The same query with another number of shards, which continues from where this one is."""
        pipeline, mode, events_per_batch, without, recorded, watched = self._made
        other = ToyQuery(pipeline, mode, shards, events_per_batch, without, recorded, watched)
        other.number, other.snapshot = self.number, self.snapshot
        division = resharding_of(signature_of(self.plan, self.shards), shards)
        for level in range(1, len(self._levels) + 1):
            self._divide(level, division, other)
        return other

    def _divide(self, level: int, division: Resharding, other: ToyQuery) -> None:
        stored = [self._headers.get((level, shard)) for shard in range(self.shards)]
        if not any(stored):
            return
        stores = {
            (shard, label): store for (own, shard, label), store in self._stores.items() if own == level
        }
        waits = {}
        for label in {label for _, label in stores} & division.waiting_pages:
            states = [
                stores.get((shard, label), DictStore()).get_many([STATE])[0] for shard in range(self.shards)
            ]
            waits[label] = waits_of(states)
        headers = merged_headers([Header.decoded(each) for each in stored], division)
        assemblies = []
        for shard in range(division.after):

            def store_of(label: str, shard: int = shard) -> DictStore:
                return other._stores.setdefault((level, shard, label), DictStore())

            assemblies.append(Assembly(store_of, division.after))
        for (shard, label), store in stores.items():
            for number, page in store.pages.items():
                for new, piece in pieces(division, waits, shard, label, number, page):
                    assemblies[new].add(loads(dumps(piece)))
        for shard, assembly in enumerate(assemblies):
            assembly.finish(waits, headers[shard].notes)
            other._headers[level, shard] = replace(headers[shard], notes=assembly.notes).encoded()
        # Rewritten checkpoints are compared by it.
        assert self._tally(level, division) == other._tally(level, division), "keys are lost"

    def _tally(self, level: int, division: Resharding) -> Counter[tuple[str, bytes]]:
        """The number of times that each key is in the pages of a level, by grouping."""
        return Counter(
            (label, name)
            for (own, _, label), store in self._stores.items()
            if own == level
            for number, page in store.pages.items()
            for name in names_in(division, label, number, page)
        )

    def _count(self, snapshot: Any) -> None:
        self.snapshot = merge_snapshots(self.snapshot, snapshot)

    @property
    def watermarks(self) -> dict[str, tuple[int, int]]:
        """The watermarks of each grouping's input and output, as a run tells them."""
        told = Watermarks(self._told, 0).by_grouping()
        return {label: (own.entering_micros, own.leaving_micros) for label, own in told.items()}

    @property
    def open_windows(self) -> dict[str, int | None]:
        """The number of open windows of each grouping, as a run tells it."""
        return {label: own.windows for label, own in Watermarks(self._told, 0).by_grouping().items()}

    @property
    def pages(self) -> dict[str, list[bytes]]:
        """All pages of state, by grouping."""
        found: dict[str, list[bytes]] = {}
        for (_, _, label), store in self._stores.items():
            found.setdefault(label, []).extend(store.pages.values())
        return found

    @property
    def headers(self) -> dict[tuple[int, int], bytes]:
        """The headers of all shards, by level and number."""
        return dict(self._headers)

    @property
    def numbered_pages(self) -> list[tuple[str, int, bytes]]:
        """All pages of state, with their grouping and their number."""
        return [
            (label, number, page)
            for (_, _, label), store in self._stores.items()
            for number, page in store.pages.items()
        ]

    @property
    def waiting_labels(self) -> set[str]:
        """The labels under which elements that wait for side inputs are kept."""
        return {
            waiting_label(spec.label) if spec.is_stateful else spec.label
            for level in self._levels
            for spec in loads(level).waiting
        }

    @property
    def elements(self) -> dict[int, int]:
        """The numbers of elements that edges have carried, if the query is watched."""
        return {int(edge): count for edge, count in take_out(self.snapshot, ELEMENTS)[1].items()}

    @property
    def waiting(self) -> dict[str, dict[str, int]]:
        """The numbers of elements that wait for each side input, by step."""
        told = Watermarks(self._told, 0).by_grouping()
        return {label: dict(own.waits) for label, own in told.items() if own.waits}

    def counted(self, name: str) -> int:
        """The total of a counter of all steps."""
        return sum(value for (_, _, _, own), value in self.snapshot.items() if own == name)


def yield_into(rows: list[Any], playing: Generator[list[Any], None, Done]) -> Done:
    """Plays a shard to its end, and adds its rows."""
    while True:
        try:
            rows += next(playing)
        except StopIteration as end:
            return end.value


def _reading(part: Any) -> Any:
    [step] = part.roots
    assert isinstance(step.primitive, Read)
    return reading_spec(part, step, partial(StreamReader, step.primitive.source, _make_decoder, step.where))


def _make_decoder() -> Any:
    return lambda record: [Part(*loads(page)) for page in record.column("value").to_pylist()]
