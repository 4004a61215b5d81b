"""Beam programs that are wrong, or whose surroundings fail: errors in three parts, and nothing is lost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")
import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.io.watch import PollResult, Watch
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.expansion_service import ExpansionServiceServicer
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.transforms.external import ExternalTransform
from apache_beam.transforms.ptransform import PTransform
from apache_beam.transforms.userstate import BagStateSpec
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from penstock.error import UnsupportedByRunner
from penstock_spark.beam import BeamRunner

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def on_spark(*flags: str, **options: Any) -> Any:
    return beam.Pipeline(
        runner=BeamRunner(shuffle_partitions=1, **options), options=PipelineOptions([*flags])
    )


class Offsets(RestrictionProvider):  # type: ignore[misc]
    def initial_restriction(self, element: int) -> OffsetRange:
        return OffsetRange(0, element)

    def create_tracker(self, restriction: OffsetRange) -> Any:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: int, restriction: OffsetRange) -> int:
        return int(restriction.size())


class InOrderOnly(beam.DoFn):  # type: ignore[misc]
    def process(self, element: int, tracker: Any = beam.DoFn.RestrictionParam(Offsets())) -> Iterator[int]:
        for position in (2, 1):
            if tracker.try_claim(position):
                yield position


class LeavesTheRest(beam.DoFn):  # type: ignore[misc]
    def process(self, element: int, tracker: Any = beam.DoFn.RestrictionParam(Offsets())) -> Iterator[int]:
        if tracker.try_claim(0):
            yield 0


class Locked(OffsetRange):  # type: ignore[misc]
    def __init__(self, start: int, stop: int) -> None:
        super().__init__(start, stop)
        self.lock = threading.Lock()


class LockedOffsets(Offsets):
    def initial_restriction(self, element: int) -> OffsetRange:
        return Locked(0, element)


class HoldsALock(beam.DoFn):  # type: ignore[misc]
    def process(
        self, element: int, tracker: Any = beam.DoFn.RestrictionParam(LockedOffsets())
    ) -> Iterator[int]:
        yield from all_of(tracker)


class GoesBack(beam.DoFn):  # type: ignore[misc]
    def process(
        self,
        element: int,
        tracker: Any = beam.DoFn.RestrictionParam(Offsets()),
        estimator: Any = beam.DoFn.WatermarkEstimatorParam(ManualWatermarkEstimator.default_provider()),
    ) -> Iterator[Any]:
        for position in all_of(tracker):
            estimator.set_watermark(Timestamp(100 - position))
            yield TimestampedValue(position, 200)


class EndlessOffsets(Offsets):
    def split(self, element: int, restriction: OffsetRange) -> Iterator[OffsetRange]:
        return itertools.repeat(OffsetRange(0, 1))


class SplitsForEver(beam.DoFn):  # type: ignore[misc]
    def process(
        self, element: int, tracker: Any = beam.DoFn.RestrictionParam(EndlessOffsets())
    ) -> Iterator[int]:
        yield from all_of(tracker)


def all_of(tracker: Any) -> Iterator[int]:
    position = tracker.current_restriction().start
    while tracker.try_claim(position):
        yield position
        position += 1


MISTAKES = [
    (InOrderOnly(), "1"),
    (LeavesTheRest(), "has not been claimed"),
    (HoldsALock(), "cannot pickle"),
    (GoesBack(), "(?i)watermark must be monotonically increasing"),
    (SplitsForEver(), "EndlessOffsets.split returns more than 100,000 restrictions"),
]
# The two whose restrictions or watermarks a stream keeps.
IN_STREAMS_ALWAYS = (HoldsALock, GoesBack)


@pytest.mark.parametrize(
    ("dofn", "what", "mode"),
    [
        pytest.param(
            dofn,
            what,
            mode,
            id=f"{type(dofn).__name__}-{mode}",
            marks=[] if mode == "batch" or isinstance(dofn, IN_STREAMS_ALWAYS) else [pytest.mark.soak],
        )
        for dofn, what in MISTAKES
        for mode in ("batch", "streaming")
    ],
)
def test_a_mistake_of_a_splittable_dofn_is_an_error_of_its_step(dofn: Any, what: str, mode: str) -> None:
    p = on_spark(mode=mode)
    _ = p | beam.Create([3]) | "Work" >> beam.ParDo(dofn)
    with pytest.raises(Exception, match=what) as raised:
        p.run().wait_until_finish()
    told = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
    assert "'Work" in told
    assert "hint: " in told


def test_a_dofn_with_restrictions_and_state_is_refused() -> None:
    class Both(beam.DoFn):  # type: ignore[misc]
        def process(
            self,
            pair: Any,
            tracker: Any = beam.DoFn.RestrictionParam(Offsets()),
            seen: Any = beam.DoFn.StateParam(BagStateSpec("seen", beam.coders.VarIntCoder())),
        ) -> Iterator[int]:
            yield pair

    p = on_spark()
    _ = p | beam.Create([("a", 1)]) | "Both" >> beam.ParDo(Both())
    with pytest.raises(UnsupportedByRunner, match=r"cannot use state or timers(.|\n)*'Both'(.|\n)*hint: "):
        p.run()


@PTransform.register_urn("penstock:test:upper", None)
class Upper(PTransform):  # type: ignore[misc]
    """What an expansion service makes a transform of."""

    def expand(self, lines: Any) -> Any:
        return lines | beam.Map(str.upper)

    def to_runner_api_parameter(self, _: Any) -> tuple[str, None]:
        return "penstock:test:upper", None

    @staticmethod
    def from_runner_api_parameter(*_: Any) -> Upper:
        return Upper()


def test_a_transform_of_another_language_is_refused_by_name() -> None:
    p = on_spark()
    _ = (
        p
        | beam.Create(["a"])
        | "Up" >> ExternalTransform("penstock:test:upper", None, ExpansionServiceServicer())
    )
    with pytest.raises(
        UnsupportedByRunner, match="ExternalTransform\n  at step 'Up'\n  hint: cross-language"
    ):
        p.run()


def test_flags_of_other_runners_have_no_effect() -> None:
    google = [
        "--region=europe-west1",
        "--project=some-project",
        "--temp_location=gs://bucket/tmp",
        "--machine_type=x",
    ]
    with on_spark(
        *google, "--max_num_workers=3", "--a_flag_of_the_programs=7", "--experiments=use_runner_v2"
    ) as p:
        assert_that(p | beam.Create([1, 2]) | beam.Map(lambda number: number + 1), equal_to([2, 3]))


def polled(log: str) -> Any:
    """The lines of a file so far, unless it says that the service is down; a last line ends it."""
    lines = Path(log).read_text().split()
    if "down" in lines:
        Path(log).write_text("a b")
        raise ConnectionError("the service is down")
    with Path(log).open("a") as file:
        file.write(" end" if "b" in lines else " down")
    found = [TimestampedValue(line, 0) for line in lines if line != "end"]
    return PollResult.complete(found) if "end" in lines else PollResult.incomplete(found)


def test_a_poll_that_fails_is_an_error_of_its_step_and_a_restart_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a")

    def run() -> None:
        with on_spark(checkpoint_location=str(tmp_path / "checkpoint")) as p:
            lines = (
                p
                | beam.Create([str(log)])
                | "Poll" >> Watch(polled, 0.1, output_coder=beam.coders.StrUtf8Coder())
            )
            minutes = lines | beam.Values() | beam.WindowInto(FixedWindows(60))
            _ = minutes | fileio.WriteToFiles(str(tmp_path / "out"), shards=1)

    with pytest.raises(ConnectionError, match=r"(?s)the service is down.*while running 'Poll/.*hint: "):
        run()
    run()
    written = [line for file in (tmp_path / "out").glob("*-of-*") for line in file.read_text().split()]
    assert sorted(written) == ["a", "b"]


def test_a_folder_that_may_not_be_empty_and_is_fails_its_step(tmp_path: Path) -> None:
    p = on_spark()
    disallow = fileio.EmptyMatchTreatment.DISALLOW
    _ = p | "Files" >> fileio.MatchContinuously(f"{tmp_path}/*", interval=0.1, empty_match_treatment=disallow)
    with pytest.raises(Exception, match=r"(?s)Empty match.*while running 'Files/.*hint: "):
        p.run().wait_until_finish()
