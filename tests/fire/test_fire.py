"""A short round of fire, and the judges of the long ones: the verifier and the trends."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fire import program_processes
from tests.fire.faults import Kill, KillAtCommit
from tests.fire.fired_program import EPOCH_SECONDS, KEYS, NUMBERS_PER_SECOND, WINDOW_SECONDS
from tests.fire.rounds import fire
from tests.fire.trends import trend_of
from tests.fire.verifying import verify

COUNT = 3 * WINDOW_SECONDS * NUMBERS_PER_SECOND


@pytest.mark.soak
@pytest.mark.spark
def test_a_stream_under_fire_has_each_number_once_in_each_sink(tmp_path: Path) -> None:
    faults = (KillAtCommit("files are named", "after"), Kill(program_processes.WORKER, one=True))
    report = fire("short", 1, 1, tmp_path, faults)
    assert len(report.shots) == 2
    assert report.starts == 2, "the supervisor has started the program again"
    assert [verdict.found for verdict in report.verdicts] == [report.numbers] * 3
    assert report.is_good, report.verdicts


def settings_of(folder: Path) -> dict[str, Any]:
    """Sinks in which each number is once."""
    settings = {
        "folder": str(folder),
        "sinks": ["text"],
        "keys": KEYS,
        "numbers_in_window": WINDOW_SECONDS * NUMBERS_PER_SECOND,
        "first_window": EPOCH_SECONDS,
        "window_seconds": WINDOW_SECONDS,
    }
    panes, steps = [], []
    for key in range(KEYS):
        numbers = [*range(key, COUNT, KEYS)]
        steps += [f"{key} {before} {number}" for before, number in enumerate(numbers)]
        for window in range(3):
            inside = [each for each in numbers if each // settings["numbers_in_window"] == window]
            panes.append(f"{key} {EPOCH_SECONDS + window * WINDOW_SECONDS} {' '.join(map(str, inside))}")
    for name, lines in (("text", [*map(str, range(COUNT))]), ("panes", panes), ("steps", steps)):
        (folder / "disk" / name).mkdir(parents=True)
        (folder / "disk" / name / "part").write_text("".join(f"{line}\n" for line in lines))
    return settings


def test_the_verifier_accepts_what_is_right(tmp_path: Path) -> None:
    verdicts = verify(settings_of(tmp_path), COUNT)
    assert [verdict.found for verdict in verdicts] == [COUNT] * 3
    assert all(verdict.is_good for verdict in verdicts)


@pytest.mark.parametrize("sink", [0, 1, 2])
@pytest.mark.parametrize(("how", "found"), [("lost", (1, 0)), ("doubled", (0, 1)), ("unknown", (0, 0))])
def test_the_verifier_sees_a_number_that_is_lost_doubled_or_unknown(
    tmp_path: Path, sink: int, how: str, found: tuple[int, int]
) -> None:
    settings = settings_of(tmp_path)
    name = ("text", "panes", "steps")[sink]
    file = tmp_path / "disk" / name / "part"
    lines = file.read_text().splitlines()
    *front, last = lines[-1].split()
    match how:
        case "lost":
            lines[-1] = " ".join(front) if name == "panes" else ""
        case "doubled":
            lines.append(" ".join([*front[:2], last]))
        case _:
            lines.append(" ".join([*front[:2], str(COUNT + int(last))]))
    file.write_text("".join(f"{line}\n" for line in lines if line))
    verdict = verify(settings, COUNT)[sink]
    assert (verdict.lost, verdict.doubled) == found
    assert not verdict.is_good


def test_the_verifier_accepts_an_empty_pane(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    with (tmp_path / "disk" / "panes" / "part").open("a") as file:
        file.write(f"0 {EPOCH_SECONDS} \n")
    assert verify(settings, COUNT)[1].is_good


@pytest.mark.parametrize(
    "line",
    [
        f"0 {EPOCH_SECONDS + 1} ",
        f"{KEYS} {EPOCH_SECONDS} ",
        f"0 {EPOCH_SECONDS} 0 1",
        f"0 {EPOCH_SECONDS} 0 500",
        f"0 {EPOCH_SECONDS + WINDOW_SECONDS} 0",
    ],
)
def test_the_verifier_sees_a_pane_of_another_key_or_window(tmp_path: Path, line: str) -> None:
    settings = settings_of(tmp_path)
    with (tmp_path / "disk" / "panes" / "part").open("a") as file:
        file.write(f"{line}\n")
    assert verify(settings, COUNT)[1].wrong == 1


@pytest.mark.parametrize(("per_hour", "grows"), [(0.0, False), (2.0, False), (20.0, True)])
def test_a_number_grows_if_its_second_half_rises_by_more_than_noise(per_hour: float, grows: bool) -> None:
    random = Random(1)
    samples = [
        {"seconds": float(second), "size": 100 + per_hour * second / 3600 + random.gauss(0, 1)}
        for second in range(0, 3600, 10)
    ]
    assert trend_of("size", samples).grows is grows


def test_a_number_that_grows_only_in_the_first_half_is_level() -> None:
    samples = [{"seconds": float(second), "size": min(second, 1800.0)} for second in range(0, 3600, 10)]
    trend = trend_of("size", samples)
    assert not trend.grows
    assert trend.end == 1800
