"""The snapshot of a run: its JSON, its bounds, and that it shows no element."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.diagrams.steps import StepView
from penstock.machines.records import MAX_MICROS
from penstock_spark.live.history import FIRINGS_MAX, POINTS_MAX, Firing, History, extend_history
from penstock_spark.live.snapshot import RunSnapshot, StepError
from tests.live.sample import HOSTILE, SECOND, STEPS, SUM, batch, hostile, stream


@pytest.mark.parametrize("now", [stream(60), batch(), hostile()], ids=["stream", "batch", "hostile"])
def test_a_snapshot_comes_back_from_its_json(now: RunSnapshot) -> None:
    assert RunSnapshot.from_json(now.to_json()) == now


def test_the_end_of_time_is_a_word_in_json_and_a_label_may_be_the_same_word() -> None:
    history = History((), (Firing("end", 7, None, MAX_MICROS, "on_time", 1),))
    now = RunSnapshot(
        "end", "r", "streaming", "DONE", 0, 1, history=history, steps=(StepView("end", "Read"),)
    )
    plain = json.loads(now.to_json())["history"]["firings"][0]
    assert (plain["start_micros"], plain["end_micros"]) == (None, "end")
    assert RunSnapshot.from_json(now.to_json()) == now


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not the snapshot of a run"),
        ("[]", "not the snapshot of a run"),
        ('{"a": 1}', "not the snapshot of a run"),
        ('{"penstock_snapshot": 99}', "has the format 99, and this version of penstock reads the format 4"),
        ('{"penstock_snapshot": 4, "name": "a"}', "is damaged"),
        ('{"penstock_snapshot": 4, "unknown": 2}', "is damaged"),
    ],
)
def test_what_is_no_snapshot_or_one_of_another_version_is_refused_with_a_hint(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        RunSnapshot.from_json(text)
    assert "\n  hint: " in str(refused.value)


def test_the_history_of_a_long_run_is_bounded_and_its_line_stays_whole() -> None:
    history = History()
    for second in range(20_000):
        clock = second * SECOND
        firing = Firing("Sum", clock, clock, clock + SECOND, "on_time", 1)
        history = extend_history(history, clock, {"Sum": clock - SECOND}, [firing])
    points = history.lines[0].points
    assert len(points) <= POINTS_MAX
    assert len(history.firings) == FIRINGS_MAX
    assert history.left_out == 20_000 - FIRINGS_MAX
    assert points[0][0] == 0
    assert points[-1] == (19_999 * SECOND, 19_998 * SECOND)
    assert list(points) == sorted(points)


def test_a_line_whose_watermark_stands_still_has_two_points_for_it() -> None:
    history = History()
    for second in range(100):
        history = extend_history(history, second, {"Sum": 5})
    assert history.lines[0].points == ((0, 5), (99, 5))


def test_the_windows_of_a_snapshot_count_as_many_panes_as_the_grouping() -> None:
    now = stream(100)
    [sums, _] = now.groupings
    fired: dict[str, int] = {}
    for firing in now.history.firings:
        assert firing.label == SUM
        fired[firing.timing] = fired.get(firing.timing, 0) + firing.count
    assert (fired["early"], fired["on_time"], fired["late"]) == (sums.early, sums.on_time, sums.late)
    assert fired["dropped"] == sums.dropped > 0


def test_an_error_in_a_snapshot_has_no_text_that_may_quote_an_element() -> None:
    secret = "4111-1111"
    failure: Any = ValueError(f"cannot parse {secret} at step 'Parse' (a.py:3) and at step '{secret}'")
    now = stream(10, STEPS, failure)
    assert secret not in now.to_json()
    [error] = now.errors
    # The place is the graph's: the text may name any.
    assert error == StepError("ValueError", "at step 'Parse' (scores.py:41)", "Parse")


def test_labels_are_all_that_a_snapshot_has_of_a_users_words() -> None:
    strings = set()

    def walk(value: Any) -> None:
        if isinstance(value, str):
            strings.add(value)
        elif isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(json.loads(stream(30).to_json()))
    kinds = {"CombinePerKey", "AssignWindows", "ParDo", "Read", "Write", "FixedWindows"}
    timings = {"early", "on_time", "late", "dropped", "retracted"}
    own = {"live_scores", "4f1c09a2b7de", "streaming", "RUNNING", "", *kinds, *timings}
    held = {"the source 'Read/Kafka'", "its own windows, which have not fired yet"}
    composites = {"Read", "Scores", "Scores/ByTeam", "Scores/All"}
    # The pace, the checkpoint, the settings, and the earlier runs.
    own |= {"keeping up", "file:///checkpoints/scores", "set, but not shown", "0.1.0", "4.1.0", "4"}
    own |= {"DIED", "FAILED", "0b51c7de11aa", "77e0a4c3b9f1", "ValueError at step 'Parse' (scores.py:41)"}
    strings = {each for each in strings if not each.startswith("micro-batches take")}
    assert strings - own - held - composites == {step.label for step in STEPS} - kinds - composites
    assert HOSTILE not in strings
