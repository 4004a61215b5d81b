"""Sources that follow the clock continue when it was set back between two runs, and yield each element once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from penstock.transforms.periodicsequence import PeriodicSource
from penstock.utils import clock
from penstock_spark.checkpoints.custody.clock_resets import ERAS, CountedSeconds, read_counted_seconds
from penstock_spark.sources.heartbeats import ClockPeriod, Heartbeat, HeartbeatDecoder
from tests.runner.disk_place import DiskPlace

FIRST_MILLIS = 1_700_000_000_000
HOURS_MILLIS = 3_600_000
TICKS = PeriodicSource(FIRST_MILLIS * 1_000, (FIRST_MILLIS + HOURS_MILLIS) * 1_000, 700_000)


@dataclass
class Seconds:
    """Spark's source of seconds, as its source code says, with the micro-batches of one query."""

    place: DiskPlace
    now_millis: int = FIRST_MILLIS
    given: dict[int, list[Heartbeat]] = field(
        default_factory=dict
    )  # What each micro-batch has read, at first.
    done: int = 0  # How many micro-batches are done.

    def run(self, micro_batches: list[int], beats: HeartbeatDecoder) -> None:
        """Runs until the clock has moved by each of some times, with a micro-batch after each."""
        folder = self.place.inside("sources/0")
        if "0" not in folder.names():
            folder.make()
            folder.write("0", f"v1\n{self.now_millis}".encode())
        start_millis = int(folder.read("0").decode().split("\n")[1])
        last_millis, planned = start_millis, self.planned()
        for number in range(self.done, len(planned) - 1):
            self._give(number, start_millis, planned[number], planned[number + 1], beats)
        for millis in micro_batches:
            self.now_millis += millis
            last_millis = max(last_millis, self.now_millis)
            before, end = self.planned()[-1], (last_millis - start_millis) // 1_000
            if before != end:
                number = len(self.planned()) - 1
                self.place.inside("offsets").write(str(number), f"v1\n{{}}\n{end}".encode())
                self._give(number, start_millis, before, end, beats)

    def planned(self) -> list[int]:
        """The number of seconds before the first micro-batch, and after each one that is planned."""
        log = self.place.inside("offsets")
        return [0, *(int(log.read(name).decode().split("\n")[2]) for name in sorted(log.names(), key=int))]

    def _give(self, number: int, start_millis: int, begin: int, end: int, beats: HeartbeatDecoder) -> None:
        assert begin <= end, "Spark never gets over a micro-batch that ends before it begins"
        times = [(start_millis + second * 1_000) * 1_000 for second in range(begin, end)]
        rows = {"value": [*range(begin, end)], "timestamp_micros": times}
        given = beats(pa.RecordBatch.from_pydict(rows))
        assert self.given.setdefault(number, given) == given, "a micro-batch that runs again reads the same"
        self.done = number + 1


@pytest.fixture
def seconds(tmp_path: Path) -> Seconds:
    place = DiskPlace(tmp_path)
    place.inside("offsets").make()
    return Seconds(place)


def started(seconds: Seconds, monkeypatch: pytest.MonkeyPatch) -> CountedSeconds:
    """The counted seconds that a run finds when it starts now."""
    monkeypatch.setattr(clock, "micros", lambda: seconds.now_millis * 1_000)
    return read_counted_seconds(seconds.place, 0)


@pytest.mark.parametrize(
    "seed", [*range(30), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(30, 60))]
)
def test_each_element_comes_once_however_often_the_clock_is_set(
    seed: int, seconds: Seconds, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    for _ in range(random.randrange(2, 9)):
        seconds.now_millis += random.choice([0, 400, 3_000, 90_000, -400, -3_000, -90_000])
        seconds.now_millis = max(seconds.now_millis, FIRST_MILLIS)
        counted = started(seconds, monkeypatch)
        assert started(seconds, monkeypatch) == counted, "a run that dies as it starts leaves it to the next"
        # Spark looks at the clock for the first time soon after the start.
        first, later = [random.randrange(2_500)], [random.randrange(-900, 2_500) for _ in range(3)]
        changes = [*first, *later][: random.randrange(5)]
        seconds.run(changes, HeartbeatDecoder(TICKS, counted.eras))
        if seconds.done and random.random() < 0.4:
            seconds.done -= 1  # It was killed before the micro-batch was done.
    seconds.now_millis += HOURS_MILLIS
    seconds.run([0, 1_000], HeartbeatDecoder(TICKS, started(seconds, monkeypatch).eras))
    heartbeats = [each for number in sorted(seconds.given) for each in seconds.given[number]]
    elements = [element.value for heartbeat in heartbeats for element in heartbeat.elements]
    assert elements == [TICKS.element(number, due).value for number, (due, _) in enumerate(TICKS.schedule())]
    ends = [heartbeat.until_micros for heartbeat in heartbeats]
    assert ends == sorted(ends)


def test_a_clock_that_goes_on_changes_nothing(seconds: Seconds, monkeypatch: pytest.MonkeyPatch) -> None:
    assert started(seconds, monkeypatch) == CountedSeconds()
    seconds.run([2_500], HeartbeatDecoder(TICKS))
    assert started(seconds, monkeypatch) == CountedSeconds(2)
    assert seconds.place.inside("sources/0").names() == ["0"]


def set_back(seconds: Seconds, monkeypatch: pytest.MonkeyPatch) -> CountedSeconds:
    """Sets the clock back by an hour after five seconds."""
    seconds.run([5_000], HeartbeatDecoder(TICKS))
    seconds.now_millis -= HOURS_MILLIS
    return started(seconds, monkeypatch)


def test_the_seconds_after_a_clock_was_set_back_are_known_and_told(
    seconds: Seconds, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    eras = ClockPeriod(0, FIRST_MILLIS), ClockPeriod(5, FIRST_MILLIS - HOURS_MILLIS)
    assert set_back(seconds, monkeypatch) == CountedSeconds(5, eras)
    assert "the clock is 3600.0 s behind the last run" in caplog.text
    # Again, before anything was read.
    seconds.now_millis -= 1_000
    assert started(seconds, monkeypatch).eras == (
        eras[0],
        ClockPeriod(5, FIRST_MILLIS - HOURS_MILLIS - 1_000),
    )


def test_a_run_that_dies_while_it_writes_its_times_leaves_it_to_the_next(
    seconds: Seconds, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = seconds.place.inside("sources/0")
    counted = set_back(seconds, monkeypatch)
    # It had deleted Spark's file to write another.
    folder.delete("0")
    assert started(seconds, monkeypatch) == counted
    assert folder.read("0").decode() == f"v1\n{counted.eras[-1].start_millis}"
    # It had not come to Spark's file, and now the clock is right again.
    folder.replace("0", f"v1\n{FIRST_MILLIS}".encode())
    seconds.now_millis += HOURS_MILLIS
    assert started(seconds, monkeypatch) == CountedSeconds(5, counted.eras[:1])


@pytest.mark.parametrize(
    "content", ["", "[]", '{"eras": [[1]]}', '{"eras": 1}', '{"format": 1, "eras": [["a", 1]]}']
)
def test_damaged_times_are_refused(seconds: Seconds, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    set_back(seconds, monkeypatch)
    seconds.place.inside("sources/0").replace(ERAS, content.encode())
    with pytest.raises(ValueError, match=r"eras\.json is damaged\n  in .*\n  hint: restore the file"):
        started(seconds, monkeypatch)


def test_times_of_a_newer_version_are_refused(seconds: Seconds, monkeypatch: pytest.MonkeyPatch) -> None:
    set_back(seconds, monkeypatch)
    folder = seconds.place.inside("sources/0")
    folder.replace(ERAS, json.dumps({**json.loads(folder.read(ERAS)), "format": 2}).encode())
    with pytest.raises(ValueError, match="a newer penstock wrote the times of a source that counts seconds"):
        started(seconds, monkeypatch)


def test_a_file_of_another_spark_is_refused(seconds: Seconds, monkeypatch: pytest.MonkeyPatch) -> None:
    set_back(seconds, monkeypatch)
    seconds.place.inside("sources/0").replace("0", b"v2\n1")
    with pytest.raises(ValueError, match="has the format v2; penstock reads v1"):
        started(seconds, monkeypatch)
