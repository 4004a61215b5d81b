"""How transcripts are read, what is said where one is malformed, and what the harness reports."""

from __future__ import annotations

import re

import pytest

from penstock.elements.bounded_window import GlobalWindow, IntervalWindow
from penstock.machines.records import (
    MAX_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    DropReason,
    EndMicroBatch,
    Signal,
)
from penstock.utils.windowed_value import PaneInfoTiming, ValueKind
from penstock_conformance import bare
from penstock_conformance.lines import event_of, expected_of
from penstock_conformance.malformed import Malformed
from penstock_conformance.moments import format_time, format_window, micros_of, window_of
from penstock_conformance.parsing import TRANSCRIPTS, parse
from penstock_conformance.scenario import ExpectedDrop, ExpectedHold, ExpectedPane, Scenario

HEADER = "= A title\nsource: a test\nwindows: FixedWindows(10)\n"


def only(text: str) -> Scenario:
    [scenario] = parse({"a.transcript": text})
    return scenario


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("3", 3_000_000),
        ("-0.000001", -1),
        ("0.3", 300_000),
        ("00:00:01.5", 1_500_000),
        ("12:00:00", 43_200_000_000),
        ("1970-01-02", 86_400_000_000),
        ("1970-01-01T01:00+01:00", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("inf", MAX_MICROS),
    ],
)
def test_a_time_is_read_to_the_microsecond(text: str, micros: int) -> None:
    assert micros_of(text) == micros


@pytest.mark.parametrize("text", ["-3.25", "1.5", "12:05:19.98", "2024-03-31T00:00:00Z", "-inf", "inf"])
def test_a_time_is_written_as_it_is_read(text: str) -> None:
    assert format_time(micros_of(text)) == text


@pytest.mark.parametrize("text", ["[0, 10)", "[12:00:00, 12:02:00)", "global"])
def test_a_window_is_written_as_it_is_read(text: str) -> None:
    assert format_window(window_of(text)) == text


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("element 5 at 3", AddElement(5, 3_000_000)),
        ("element game: 'a at b' at -3", AddElement("a at b", -3_000_000, key="game")),
        ("7 element 5 at 3", AddElement(5, 3_000_000, 7_000_000)),
        ("00:00:07 retraction [1] at 3", AddElement([1], 3_000_000, 7_000_000, kind=ValueKind.DELETE)),
        ("watermark 3", AdvanceWatermark(3_000_000)),
        (
            "7 watermark 3; 90% 4, 5% 6",
            AdvanceWatermark(3_000_000, 7_000_000, {0.9: 4_000_000, 0.05: 6_000_000}),
        ),
        ("7 clock", AdvanceClock(7_000_000)),
        ("signal flush all", Signal("flush all")),
        ("7 end of round", EndMicroBatch(7_000_000)),
    ],
)
def test_an_event_is_read(text: str, event: object) -> None:
    assert event_of(text) == event


def test_a_pane_says_what_it_states_and_no_more() -> None:
    pane = expected_of("game: [1, 'x in y'] in [0, 10)")
    assert pane == ExpectedPane(
        "game: [1, 'x in y'] in [0, 10)", [1, "x in y"], "game", IntervalWindow(0, 10)
    )


def test_a_pane_may_state_everything() -> None:
    text = "retract 12 in global late not first last #3 nonspeculative #1 update_before at 9.999999"
    assert expected_of(text) == ExpectedPane(
        text=text,
        value=12,
        key=None,
        window=GlobalWindow(),
        is_retraction=True,
        kind=ValueKind.UPDATE_BEFORE,
        timing=PaneInfoTiming.LATE,
        is_first=False,
        is_last=True,
        index=3,
        nonspeculative_index=1,
        timestamp_micros=9_999_999,
    )


def test_a_dropped_element_is_read() -> None:
    text = "dropped game: 9 in [0, 10) finished"
    assert expected_of(text) == ExpectedDrop(text, 9, "game", IntervalWindow(0, 10), DropReason.FINISHED)


def test_what_comes_out_belongs_to_the_event_above_it() -> None:
    scenario = only(
        HEADER + "\nelement 5 at 3\n  hold 9.999999\nwatermark 10\n  -> [5] in [0, 10)\n  no hold\n"
    )
    element, watermark = scenario.steps("streaming")
    assert (element.expected, element.hold) == ((), ExpectedHold(9_999_999))
    assert [expected.text for expected in watermark.expected] == ["[5] in [0, 10)"]
    assert (watermark.hold, watermark.place) == (ExpectedHold(None), "a.transcript:7")


def test_a_comment_is_not_read_and_ends_nothing() -> None:
    header = "# Why.\n= A title # so\nsource: a test\n# Why so.\nwindows: FixedWindows(10)\n"
    scenario = only(header + "\n# Now.\nelement '#' at 3 # a\n")
    assert (scenario.title, scenario.settings) == ("A title", {"windows": "FixedWindows(10)"})
    assert scenario.steps("streaming")[0].events == (AddElement("#", 3_000_000),)


def test_recordings_are_put_together_in_order_of_processing_time() -> None:
    text = (
        "~ clock\n5 clock\n~ rounds\n5 end of round\n~ water\n5 watermark 3\n"
        "~ elements\n5 element 1 at 1\n4 element 2 at 2\n"
        f"{HEADER}input: clock, rounds, water, elements\n\nat 5 within 2\n  -> 1 in global\n"
    )
    [step] = only(text).steps("streaming")
    assert step.events == (
        *(AddElement(2, 2_000_000, 4_000_000), AddElement(1, 1_000_000, 5_000_000)),
        *(AdvanceWatermark(3_000_000, 5_000_000), EndMicroBatch(5_000_000), AdvanceClock(5_000_000)),
    )
    [pane] = step.expected
    assert (pane.clock_micros, pane.tolerance_micros) == (5_000_000, 2_000_000)


def test_files_of_a_folder_share_their_recordings() -> None:
    files = {
        "one": "~ input of all\n5 element 1 at 1\n",
        "two": HEADER + "input: input of all\n\nend of input\n  -> [1] in [0, 10)\n",
    }
    [scenario] = parse(files)
    assert bare.report(scenario, "streaming") is None


def test_the_same_may_happen_in_several_modes() -> None:
    scenario = only(HEADER + "\n5 element 1 at 3\n9 end of round\n\nin micro_batch:\nend of input\n")
    assert scenario.modes == ("streaming", "micro_batch")
    assert [step.events for step in scenario.steps("micro_batch")] == [
        (AddElement(1, 3_000_000, 5_000_000), EndMicroBatch(9_000_000)),
        (),
    ]
    assert scenario.steps("batch") == ()


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("element 5 at 3\n", "a.transcript:1", "'element 5 at 3' is outside a scenario"),
        ("= A\nwindows: GlobalWindows()\n\nelement 5 at 3\n", "a.transcript:1", "'A' has no source"),
        ("= A\nsource: us\n\nelement 5 at 3\n", "a.transcript:1", "'A' has no windows"),
        (HEADER + "triger: Always()\n", "a.transcript:4", "'triger: Always()' is not a setting"),
        (HEADER + "order: any\n\nelement 5 at 3\n", "a.transcript:1", "the order is 'any'"),
        (
            HEADER + "engine: turbo\n\nelement 5 at 3\n",
            "a.transcript:1",
            "the engine mode 'turbo' is unknown",
        ),
        (HEADER + "input: nothing\n\nat 3\n", "a.transcript:1", "the recording 'nothing' does not exist"),
        (
            HEADER + "shows: C-100, figure x\n",
            "a.transcript:1",
            "'figure x' is not the name of a figure or a rule",
        ),
        (HEADER, "a.transcript:1", "the scenario has no events"),
        (HEADER + "\nelemnt 5 at 3\n", "a.transcript:5", "'elemnt 5 at 3' is not an event"),
        (HEADER + "\nelement 5\n", "a.transcript:5", "'5' is not an element with its event time"),
        (HEADER + "\nelement five at 3\n", "a.transcript:5", "'five' is not a value"),
        (
            HEADER + "\nelement 5 at noon\n",
            "a.transcript:5",
            "'5 at noon' is not an element with its event time",
        ),
        (HEADER + "\nelement 5 at 25:00:00x\n", "a.transcript:5", "'5 at 25:00:00x' is not an element"),
        (HEADER + "\nelement 5 at 2024-02-30\n", "a.transcript:5", "'2024-02-30' is not a time"),
        (HEADER + "\nwatermark soon\n", "a.transcript:5", "'soon' is not a watermark"),
        (HEADER + "\nclock\n", "a.transcript:5", "'clock' has missing or additional parts"),
        (HEADER + "\n-> 5 in [0, 10)\n", "a.transcript:5", "nothing has happened yet"),
        (
            HEADER + "\nelement 5 at 3\n  -> 5\n",
            "a.transcript:6",
            "'5' is neither a pane nor a dropped element",
        ),
        (
            HEADER + "\nelement 5 at 3\n  -> 5 in [0, 10]\n",
            "a.transcript:6",
            "'5 in [0, 10]' is neither a pane nor a dropped element",
        ),
        (
            HEADER + "\nelement 5 at 3\n  -> 5 in [0, 10) soon\n",
            "a.transcript:6",
            "'soon' does not describe a pane",
        ),
        (
            HEADER + "\nelement 5 at 3\n  -> 5 in [0, 10) not early\n",
            "a.transcript:6",
            "'not early' does not describe",
        ),
        (
            HEADER + "\nelement 5 at 3\n  -> 5 in [0, 10) #first\n",
            "a.transcript:6",
            "'#first' does not describe",
        ),
        (
            HEADER + "\nelement 5 at 3\n  -> 5 in [0, 10) (early)\n",
            "a.transcript:6",
            "'(early)' does not describe",
        ),
        (HEADER + "\nelement 5 at 3\nat 5\n", "a.transcript:6", "'at 5' needs recorded input"),
        (
            HEADER + "\nend of input\nelement 5 at 3\n",
            "a.transcript:1",
            "the part has lines after `end of input`",
        ),
        (HEADER + "engine: batch\n\nelement 5 at 3\n", "a.transcript:1", "a batch must end"),
        (
            HEADER + "engine: batch\n\nelement 5 at 3\n  -> [5] in [0, 10)\nend of input\n",
            "a.transcript:1",
            "a batch emits everything at its end",
        ),
        (HEADER + "engine: micro_batch\n\nelement 5 at 3\n", "a.transcript:1", "a micro-batch must end"),
        (HEADER + "\nelement 5 at 3\n\nin streaming:\n", "a.transcript:1", "an engine mode occurs twice"),
        (HEADER + "\nelement 5 at 3\n\nin turbo:\n", "a.transcript:7", "the engine mode 'turbo' is unknown"),
        ("~ r\nelement 5 at 3\n", "a.transcript:2", "has no processing time"),
        ("~ r\n~ r\n", "a.transcript:2", "the title 'r' is used twice"),
        (
            "~ r\n5 element 5 at 3\n" + HEADER + "input: r\n\n-> 5 in [0, 10)\n",
            "a.transcript:8",
            "'5 in [0, 10)' has no time",
        ),
        (
            "~ r\n5 element 5 at 3\n" + HEADER + "input: r\n\nwatermark 5\n",
            "a.transcript:8",
            "'watermark 5' is out of place",
        ),
    ],
)
def test_what_is_malformed_is_said_with_its_line_and_a_hint(text: str, place: str, what: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse({"a.transcript": text})
    first, where, hint = str(raised.value).split("\n", 2)
    assert what in first
    assert where == f"  at {place}"
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("trigger: AfterCuont(1)", "'AfterCuont(1)' cannot be understood"),
        ("accumulation: forgetting", "accumulation is 'forgetting'"),
        ("lateness: much", "'much' is not a time"),
    ],
)
def test_a_setting_that_cannot_be_understood_is_no_refusal_of_the_model(setting: str, what: str) -> None:
    scenario = only(f"{HEADER}{setting}\nfails: is\n")
    with pytest.raises(Malformed, match=re.escape(what)) as raised:
        bare.report(scenario, "streaming")
    assert "\n  at a.transcript:1\n" in str(raised.value)


def test_a_grouping_that_should_be_refused_and_is_not_is_reported() -> None:
    report = bare.report(only(HEADER + "fails: strictly positive\n"), "streaming")
    assert report is not None
    assert "the grouping is not refused, but should be, with 'strictly positive'" in report


def test_a_grouping_that_is_refused_for_another_reason_is_reported() -> None:
    report = bare.report(only(HEADER.replace("10", "0") + "fails: too large\n"), "streaming")
    assert report is not None
    assert "the size parameter must be strictly positive" in report


def test_an_expectation_that_should_not_be_met_and_is_is_reported() -> None:
    met = only(HEADER + "unmet: missing\n\nelement 5 at 3\nwatermark 10\n  -> [5] in [0, 10)\n")
    report = bare.report(met, "streaming")
    assert report is not None
    assert "nothing is reported with 'missing', but should be" in report


def test_a_report_can_be_read() -> None:
    text = HEADER + "\nelement a: 5 at 3\nwatermark 10\n  -> a: [5, 6] in [0, 10) late\nelement a: 7 at 4\n"
    assert bare.report(only(text), "streaming") == (
        "a.transcript:1: A title (streaming)\n"
        "  at a.transcript:6: watermark 10\n"
        "    missing:    -> a: [5, 6] in [0, 10) late\n"
        "    unexpected: -> a: [5] in [0, 10) on-time first last #0 nonspeculative #0 insert at 9.999999 "
        "(clock: -inf)\n"
        "  at a.transcript:8: element a: 7 at 4\n"
        "    unexpected: -> dropped a: 7 in [0, 10) expired (clock: -inf)"
    )


def test_the_examples_of_the_format_hold() -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", (TRANSCRIPTS / "FORMAT.md").read_text("utf-8"), re.M | re.S)
    scenarios = [
        scenario for number, block in enumerate(blocks) for scenario in parse({f"example {number}": block})
    ]
    assert [scenario.title for scenario in scenarios] == ["Early, on-time and late panes", "Two scores"]
    for scenario in scenarios:
        for mode in scenario.modes:
            assert bare.report(scenario, mode) is None


@pytest.mark.parametrize(
    ("source", "shows", "names"),
    [
        ("Beam's FixedWindows", "", ()),
        ("paper 2.4, figure 7", "", ("figure 7",)),
        ("paper 2.4, figures 7 and 8 (AtPeriod)", "", ("figure 7", "figure 8")),
        (
            "paper 2.4, figures 10 to 12; C-120 to C-122",
            "",
            ("figure 10", "figure 11", "figure 12", "C-120", "C-121", "C-122"),
        ),
        ("Streaming Systems, figures 2-7 and 4-3", "", ("figure 2-7", "figure 4-3")),
        (
            "Streaming Systems, figure 2-10 left (= 3-2 left), example 2-6",
            "figure 3-2",
            ("figure 2-10", "example 2-6", "figure 3-2"),
        ),
        ("paper 3.3.5 (S-8); patent P-24 (a), (f); M-13", "", ("S-8", "P-24", "M-13")),
        ("table 2-1; C2-13", "S6-02, C2-13", ("table 2-1", "C2-13", "S6-02")),
        ("Streaming Systems, 2.8; 31 March 2024: 02:00 becomes 03:00", "S9-06b", ("S9-06b",)),
    ],
)
def test_a_scenario_has_the_names_that_its_source_cites_and_others(
    source: str, shows: str, names: tuple[str, ...]
) -> None:
    text = HEADER.replace("a test", source) + (f"shows: {shows}\n" if shows else "")
    assert only(f"{text}\nelement 5 at 3\n").names == names
