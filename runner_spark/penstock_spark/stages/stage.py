"""A fused stage at work in a Spark task: Arrow batches in, batches of elements through the steps, Arrow batches out."""

from __future__ import annotations

import gc
import random
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa

from penstock.functions.wrapping import find_functions
from penstock.graph import AssignWindows, ParDo, StatefulParDo
from penstock.metrics.execution import (
    ELEMENTS,
    MetricsContainer,
    Snapshot,
    current_container,
    merge_snapshots,
)
from penstock.windows.window_fn import Sessions
from penstock_spark.folding.direct_steps import DirectCounting, FixedStep, PairStep, SessionStep
from penstock_spark.folding.group_read import GroupReader, read_groups
from penstock_spark.folding.group_write import GroupWriter
from penstock_spark.folding.machine_read import MachineReader
from penstock_spark.folding.machine_write import ElementWriter
from penstock_spark.folding.numbers import NumberReader, read_numbers
from penstock_spark.folding.totals import TotalsReader
from penstock_spark.plan.hosts import Rows
from penstock_spark.plan.splitting import RestrictionParDo, keeps_restrictions
from penstock_spark.reports.crash_marker import digits_of, number_steps, record_no_step, record_steps
from penstock_spark.reports.failure import fail_step, name_failing_step
from penstock_spark.reports.reporting import report_with
from penstock_spark.session.worker_socket import acknowledge_each
from penstock_spark.shipping.import_paths import import_like_driver
from penstock_spark.stages.stateful_read import StatefulReader
from penstock_spark.worker.asynchronous import AsyncStep
from penstock_spark.worker.batch import Batch, decode_page, dumps, loads
from penstock_spark.worker.batch_sizer import Scale, SizedConsumer, WeighedConsumer
from penstock_spark.worker.inline import inline_batches
from penstock_spark.worker.outputs import Outputs
from penstock_spark.worker.pardo import DoFnStep
from penstock_spark.worker.program import (
    ColumnsRoot,
    DirectStepSpec,
    ElementWriterSpec,
    GroupRoot,
    GroupWriterSpec,
    InlineRoot,
    MachineRoot,
    PageRoot,
    PageWriterSpec,
    ScanRoot,
    SinkWriterSpec,
    StageProgram,
    StatefulRoot,
    StepSpec,
    TotalsRoot,
    WriterSpec,
)
from penstock_spark.worker.pushing import Consumer, Node, Records, Tee
from penstock_spark.worker.splittable import KeptRestrictionStep, RestrictionStep
from penstock_spark.worker.stateful import StatefulStep
from penstock_spark.worker.views import BroadcastContents, Contents
from penstock_spark.worker.windowing import AssignStep
from penstock_spark.worker.writers import PageWriter, SinkWriter

if TYPE_CHECKING:
    from penstock_spark.session.backend import ReportSink

BUNDLE_ELEMENTS = 100_000
"""The number of elements of a root after which a bundle ends, so that a DoFn gathers a limited number in it."""

_FRAMES_PER_STEP = 8
_Step = TypeVar("_Step", bound=DoFnStep)


class Stage:
    """The connected nodes of a program, for one task."""

    def __init__(self, program: StageProgram[Any], partition: int, pages: dict[int, Any]) -> None:
        self.program = program
        self._contents: dict[int, Contents] = {edge: BroadcastContents(own) for edge, own in pages.items()}
        self.partition = partition
        self.containers: dict[str, MetricsContainer] = {}
        self._steps = number_steps(self.parts())
        self._consumers: dict[int, list[Consumer]] = {}
        self._used: set[int] = set()
        self._elements = dict.fromkeys(program.counted, 0)  # How many elements each edge has carried.
        self._scale = Scale()
        self._sized: dict[int, SizedConsumer] = {}
        self.stateful: dict[str, StatefulStep] = {}
        self.splittable: dict[str, KeptRestrictionStep] = {}  # The steps that keep restrictions.
        self.nodes: list[Node] = []
        # Writers and steps are made from the last to the first, so that each finds its consumers.
        writers: list[Node] = [self._writer(spec) for spec in program.writers]
        for spec, writer in zip(program.writers, writers, strict=True):
            self._consumers.setdefault(spec.edge, []).append(writer)
        steps = [self._step(step) for step in reversed(program.steps)]
        self.readers = {
            root.tag: self._reader(root)
            for root in program.roots
            if isinstance(root, GroupRoot | MachineRoot | StatefulRoot)
        }
        self.nodes = [*reversed(steps), *writers]

    def parts(self) -> Iterable[Any]:
        """Everything that may have a label, and a place in the user's program."""
        return (*self.program.roots, *self.program.steps, *self.program.writers)

    def container(self, label: str) -> MetricsContainer:
        if label not in self.containers:
            number, _ = self._steps.get(label, (0, ""))
            self.containers[label] = MetricsContainer(label, digits_of(number))
        return self.containers[label]

    def tee(self, edge: int) -> Consumer:
        consumers = self._consumers.get(edge, [])
        consumer = consumers[0] if len(consumers) == 1 else Tee(consumers)
        return Counting(self._elements, edge, consumer) if edge in self._elements else consumer

    def sized_for(self, edge: int) -> SizedConsumer:
        """Takes the batches that a root puts on an edge, in parts of a size that fits the steps behind it."""
        if edge not in self._sized:
            self._sized[edge] = self.sized(self.tee(edge))
        return self._sized[edge]

    def sized(self, consumer: Consumer) -> SizedConsumer:
        """Takes batches to a consumer in parts of a size that fits."""
        return SizedConsumer(consumer, self._scale)

    def _own(self, function: object) -> Any:
        """The function itself for the first step that calls it, a copy for every other one: steps share no state.

        Steps may share a function inside others, such as two rounds of a CombineFn whose types are checked.
        """
        functions = find_functions(function) or {id(function): function}
        if not self._used.isdisjoint(functions):
            return loads(dumps(function))
        self._used.update(functions)
        return function

    def owning(self, spec: Any) -> Any:
        """A root or a writer with a CombineFn of its own."""
        return spec if spec.combine is None else replace(spec, combine=self._own(spec.combine))

    def _reader(
        self, root: GroupRoot | MachineRoot | StatefulRoot
    ) -> GroupReader | NumberReader | MachineReader | StatefulReader:
        if isinstance(root, StatefulRoot):
            return StatefulReader(root, self.stateful[root.label])
        root = cast(GroupRoot | MachineRoot, self.owning(root))
        parts = (self.sized_for(root.edge), self.container(root.label))
        if isinstance(root, GroupRoot):
            return (NumberReader if root.host.rows is Rows.NUMBERS else GroupReader)(root, *parts)
        return MachineReader(root, *parts, None if root.late_edge is None else self.sized_for(root.late_edge))

    def _step(self, spec: StepSpec) -> Node:
        node: Node
        match spec.primitive:
            case _ if isinstance(spec, DirectStepSpec):
                node = self._direct(spec)
            case None:
                node = self._flatten(spec.outputs[0][1])
            case AssignWindows():
                node = self._assign(spec)
            case StatefulParDo() if keeps_restrictions(spec.primitive):
                self.splittable[spec.label] = self._dofn(KeptRestrictionStep, spec)
                return self.splittable[spec.label]
            case StatefulParDo():
                self.stateful[spec.label] = self._dofn(StatefulStep, spec)
                # Its elements come by key, and not along an edge.
                return self.stateful[spec.label]
            case ParDo():
                node = self._stateless(spec)
        for edge in spec.inputs:
            # Steps are made last to first; the first consumer of an edge must still come first.
            self._consumers.setdefault(edge, []).insert(0, node)
        return node

    def _flatten(self, edge: int) -> Node:
        consumers = self._consumers.get(edge, [])
        return Tee([self.tee(edge)] if edge in self._elements else consumers)

    def _assign(self, spec: StepSpec) -> AssignStep:
        windowfn, metrics = spec.windowing.windowfn, self.container(spec.label)
        return AssignStep(windowfn, self.tee(spec.outputs[0][1]), metrics, spec.where)

    def _direct(self, spec: DirectStepSpec) -> Node:
        """A step whose work the writers of groupings do."""
        edge = spec.outputs[0][1]
        counting = [DirectCounting(self._elements, edge)] if edge in self._elements else []
        writers: list[Any] = [*counting, *self._consumers[edge]]
        if isinstance(spec.primitive, ParDo):
            return PairStep(writers)
        windowfn = spec.windowing.windowfn
        direct = SessionStep if type(windowfn) is Sessions else FixedStep
        return direct(self._assign(spec), windowfn, writers)

    def _stateless(self, spec: StepSpec) -> DoFnStep:
        primitive: Any = spec.primitive
        if isinstance(primitive, RestrictionParDo):
            return self._dofn(RestrictionStep, spec)
        return self._dofn(AsyncStep if primitive.dofn.calls_asynchronously else DoFnStep, spec)

    def _dofn(self, kind: type[_Step], spec: StepSpec) -> _Step:
        primitive: Any = spec.primitive
        own = self._own(primitive.dofn)
        if own is not primitive.dofn:
            spec = replace(spec, primitive=replace(primitive, dofn=own))
        metrics = self.container(spec.label)
        by_tag: dict[str | None, Consumer] = {
            tag: WeighedConsumer(self.tee(edge), self._scale) for tag, edge in spec.outputs
        }
        kinds = primitive.dofn.output_kinds
        outputs = Outputs(by_tag, metrics, spec.where, spec.windowing.windowfn, kinds, self._scale)
        return kind(spec, outputs, metrics, self._contents_for(spec))

    def _contents_for(self, spec: StepSpec) -> Mapping[int, Contents]:
        return self._contents

    def _writer(self, spec: WriterSpec) -> Node:
        task = self.program.stage, self.partition
        match spec:
            case GroupWriterSpec():
                return GroupWriter(self.owning(spec), *task, self.container(spec.label))
            case ElementWriterSpec():
                metrics = self.container(spec.label)
                return ElementWriter(spec, *task, metrics)
            case PageWriterSpec():
                return PageWriter(spec, *task)
            case SinkWriterSpec():
                return SinkWriter(spec)

    def run(self, records: Iterator[Any]) -> Records:
        record_steps(self._steps)
        lively: list[Any] = [*self.readers.values(), *self.nodes]
        started: list[Any] = []
        failed = True
        try:
            yield from name_failing_step(self._run(lively, started, records), self.where_now)
            failed = False
        finally:
            tear_down(started, failed)
            record_no_step()

    def _run(self, lively: list[Any], started: list[Any], records: Iterator[Any]) -> Records:
        for node in lively:
            started.append(node)
            node.setup()
        for node in self.nodes:
            if isinstance(node, SinkWriter):
                yield from node.start()
        yield from self._bundles(records)
        for node in self.nodes:
            yield from node.finish()

    def where_now(self) -> str:
        """The running step, as an error's second line."""
        container = current_container()
        return self._steps.get(container.step_name if container else "", (0, "at a step of this task"))[1]

    def _bundles(self, records: Iterator[Any]) -> Records:
        """Bundles of the roots' batches, each started before its first batch and finished after its last."""
        if self.readers:
            numbers = {
                tag: reader for tag, reader in self.readers.items() if isinstance(reader, NumberReader)
            }
            if len(numbers) == len(self.readers):
                yield from self._bundle(lambda: read_numbers(records, numbers))
            else:
                yield from self._bundle(lambda: read_groups(records, self.readers))
            return
        batches = self._root_batches(records)
        for first in batches:
            yield from self._bundle(lambda first=first: self._push_some(first, batches))  # type: ignore[misc]

    def _bundle(self, body: Callable[[], Records]) -> Records:
        for node in self.nodes:
            node.start_bundle()
        yield from body()
        for node in self.nodes:
            yield from node.finish_bundle()

    def _push_some(self, first: tuple[Consumer, Batch], rest: Iterator[tuple[Consumer, Batch]]) -> Records:
        consumer, batch = first
        pushed = len(batch.values)
        yield from consumer.push(batch)
        while pushed < BUNDLE_ELEMENTS:
            for consumer, batch in rest:
                pushed += len(batch.values)
                yield from consumer.push(batch)
                break
            else:
                return

    def _root_batches(self, records: Iterator[Any]) -> Iterator[tuple[Consumer, Batch]]:
        roots = self.program.roots
        inline = [root for root in roots if isinstance(root, InlineRoot)]
        if inline:
            yield from self._inline(inline, records)
        for scan in (root for root in roots if isinstance(root, ScanRoot)):
            yield from self._scan(scan, records)
        for columns in (root for root in roots if isinstance(root, ColumnsRoot)):
            for record in records:
                batch = columns.read(record)
                if batch.values:
                    yield self.sized_for(columns.edge), batch
        totals = [root for root in roots if isinstance(root, TotalsRoot)]
        if totals:
            reader = TotalsReader(totals)
            for record in records:
                for edge, batch in reader.read(record):
                    yield self.sized_for(edge), batch
        pages = {root.tag: self.sized_for(root.edge) for root in roots if isinstance(root, PageRoot)}
        if pages:
            for record in records:
                tags, values = record.column("tag").to_pylist(), record.column("value").to_pylist()
                for tag, page in zip(tags, values, strict=True):
                    yield pages[tag], decode_page(page)

    def _inline(self, inline: list[InlineRoot], records: Iterable[Any]) -> Iterator[tuple[Consumer, Batch]]:
        """The slices with the numbers in the task's rows; the task's own number also counts tasks of other
        frames.
        """
        for record in records:
            for slice_number in record.column(0).to_pylist():
                for root in inline:
                    consumer = self.sized_for(root.edge)
                    for batch in inline_batches(root.values, slice_number, self.program.partitions):
                        yield consumer, batch

    def _scan(self, scan: ScanRoot, records: Iterable[Any]) -> Iterator[tuple[Consumer, Batch]]:
        consumer = self.sized_for(scan.edge)
        read = scan.make_reader()
        for record in records:
            for part in _read(read, record, scan.where):
                batch = part if isinstance(part, Batch) else Batch(part)
                if batch.values:
                    yield consumer, batch

    def snapshot(self) -> Snapshot:
        counts = self._elements.items()
        merged: Snapshot = {(ELEMENTS, str(edge), "penstock", ELEMENTS): count for edge, count in counts}
        for container in self.containers.values():
            merged = merge_snapshots(merged, container.snapshot())
        return merged


def _read(read: Callable[[Any], Iterable[Any]], record: pa.RecordBatch, where: str) -> Iterator[Any]:
    """Reads an Arrow batch with a source's reader; its errors name the step that reads."""
    try:
        yield from read(record)
    except Exception as error:
        fail_step(error, where)


def tear_down(nodes: list[Any], failed: bool) -> None:
    """Tears every node down, even if one of them fails; an earlier error of the task takes precedence."""
    first: Exception | None = None
    for node in nodes:
        try:
            node.teardown()
        except Exception as error:
            first = first or error
    # A worker that ends writes nothing more, not even the beginning of a line.
    sys.stdout.flush()
    if first is not None and not failed:
        raise first


def seed_random(program: StageProgram[Any], *task: int) -> None:
    """Has ``random`` and ``numpy.random`` give a task the same numbers when Spark runs it again, and each task others.

    The tasks that take what it has made may have begun: the part of a hot key to which an element goes, for example,
    must not be another one then.
    """
    if program.seed:
        seed = " ".join(map(str, (program.seed, program.stage, *task)))
        random.seed(seed)
        # Spark's daemon has imported it with pandas. NumPy takes a seed of 32 bits.
        if (of_numpy := sys.modules.get("numpy.random")) is not None:
            of_numpy.seed(zlib.crc32(seed.encode()))


def stage_function(
    program: bytes, pages: dict[int, Any], metrics: ReportSink, sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for Spark's ``mapInArrow``; it unpickles the program once it can import what the driver can.

    It reports its snapshot to `metrics` under the run, the stage and the partition.
    """

    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        records = acknowledge_each(iter(records))
        collect_less_often()
        import_like_driver(sys_path)
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        loaded: StageProgram[WriterSpec] = loads(program)
        report_with(loaded.reporting)
        seed_random(loaded, partition)
        # Every step below another one takes a few frames of the Python stack.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1_000 + _FRAMES_PER_STEP * len(loaded.steps)))
        stage = Stage(loaded, partition, pages)
        yield from stage.run(records)
        # Spark uses a worker again only if it has read all its input; in-memory values come with a row each.
        for _ in records:
            pass
        snapshot = stage.snapshot()
        if snapshot:
            metrics.add({(loaded.run, loaded.stage, partition): snapshot})

    return run


_COLLECT_AFTER = 100_000

_modules_frozen = 0


def collect_less_often() -> None:
    """Spaces out Python's search for cycles, and excludes the objects of a worker's modules from it.

    Batches consist of very many small objects without cycles; a search after every 700 new ones took up to 40
    % of a stage's time. A program that has set a larger number keeps it. Spark's workers also search after
    each task, among hundreds of thousands of objects, most of which came with modules, and stay.
    """
    global _modules_frozen
    youngest, *older = gc.get_threshold()
    if 0 < youngest < _COLLECT_AFTER:
        gc.set_threshold(_COLLECT_AFTER, *older)
    if len(sys.modules) != _modules_frozen:
        _modules_frozen = len(sys.modules)
        gc.freeze()


class Counting:
    """Counts what an edge carries, on its way to the reader of the edge.

    Args:
        counts: The number of elements so far, by edge; other consumers also count here.
        edge: The edge.
        consumer: Its reader.
    """

    def __init__(self, counts: dict[int, int], edge: int, consumer: Consumer) -> None:
        self._counts = counts
        self._edge = edge
        self._push = consumer.push

    def push(self, batch: Batch) -> Records:
        self._counts[self._edge] += len(batch.values)
        return self._push(batch)
