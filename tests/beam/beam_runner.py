"""Programs on Apache Beam's in-process runner: one TestStream feeds several groupings at a time."""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct import test_stream_impl
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms import userstate
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp

from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark
from tests.beam.beam_panes import Shown, shown
from tests.beam.beam_programs import Program, Step

OPTIONS = ("--streaming", "--allow_unsafe_triggers", "--no_pipeline_type_check")

_panes: dict[int, list[Shown]] = defaultdict(list)
_step = 0


class _Note(beam.DoFn):
    """Writes every pane down, under the number of its program. Beam pickles it, so what it writes to is not in it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def process(
        self,
        element: Any,
        timestamp: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> None:
        key, value = element
        note(self.number, shown(_step, key, value, timestamp, window, pane))


def note(number: int, pane: Shown) -> None:
    """Adds a pane of a program."""
    _panes[number].append(pane)


def run(programs: Sequence[Program]) -> list[list[Shown]]:
    """What Beam gives for programs that share a script."""
    _panes.clear()
    with _counted_steps(), _quick_signatures(), _quick_options(), _quiet():
        pipeline = beam.Pipeline(runner=BundleBasedDirectRunner(), options=PipelineOptions(OPTIONS))
        elements = pipeline | _stream(programs[0].script)
        for number, program in enumerate(programs):
            windowed = elements | f"Window{number}" >> beam.WindowInto(**program.windowing("apache_beam"))
            grouping = beam.CombinePerKey(sum) if program.summed else beam.GroupByKey()
            _ = windowed | f"Group{number}" >> grouping | f"Note{number}" >> beam.ParDo(_Note(number))
        _run_to_the_end(pipeline)
    return [_panes[number] for number in range(len(programs))]


def _run_to_the_end(pipeline: beam.Pipeline) -> None:
    """Runs a pipeline. Where a window still holds elements at the end of time, Beam's runner says so by a TypeError."""
    try:
        pipeline.run(test_runner_api=False).wait_until_finish()
    except TypeError as error:
        if "BaseException" not in str(error):
            raise


def _stream(script: Sequence[Step]) -> TestStream:
    """Every element in an event of its own: Beam asks triggers once for all elements of an event."""
    stream = TestStream()
    clock_micros = 0
    for step in script:
        match step:
            case AddElement():
                at = Timestamp(micros=step.timestamp_micros)
                stream.add_elements([TimestampedValue((step.key, step.value), at)])
            case AdvanceWatermark():
                stream.advance_watermark_to(Timestamp(micros=step.watermark_micros))
            case AdvanceClock():
                stream.advance_processing_time(Duration(micros=step.clock_micros - clock_micros))
                clock_micros = step.clock_micros
    return stream


def _counted_steps() -> Any:
    """While it lasts, `_step` is the number of the script's step that the runner is at."""
    events_before_the_script = 3

    def counted(events: Sequence[Any]) -> Iterator[Any]:
        global _step
        for number, event in enumerate(events):
            _step = number - events_before_the_script
            yield event

    return mock.patch.object(test_stream_impl._TestStream, "events_from_script", counted)


def _quick_signatures() -> Any:
    """Beam reads the signatures of a DoFn anew for every bundle; once is enough."""
    read: Any = userstate.get_dofn_specs
    known: dict[type, Any] = {}

    def once(dofn: Any) -> Any:
        if type(dofn) not in known:
            known[type(dofn)] = read(dofn)
        return known[type(dofn)]

    return mock.patch.object(userstate, "get_dofn_specs", once)


def _quick_options() -> Any:
    """Beam parses its options anew whenever it looks at one; once is enough."""
    parse = PipelineOptions.view_as
    known: dict[tuple[int, type], Any] = {}

    def once(options: PipelineOptions, view: type) -> Any:
        if (id(options), view) not in known:
            known[id(options), view] = options, parse(options, view)
        return known[id(options), view][1]

    return mock.patch.object(PipelineOptions, "view_as", once)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Beam warns of every trigger that may finish."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
