"""Drawings: what is in them, where it is, and that it can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.diagrams.colours import DARK, LIGHT
from penstock.diagrams.markup import MINUS
from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.utils.windowed_value import PaneInfoTiming
from penstock_figures import RecordedInput, RecordedPane, Recording, draw
from penstock_figures.layout import KEYS_MAX, WIDTH
from tests.figures.recorded_figures import SECOND, figure, of_inputs, transcripts
from tests.figures.svg_reading import (
    SVG,
    along,
    circles,
    classes,
    elements_drawn,
    number,
    overlaps,
    parsed,
    texts,
)


def minutes(label: str) -> float:
    """The minute of the day of a label such as 12:05 or 12:05:30."""
    hours, minutes_, *seconds = map(int, label.split(":"))
    return hours * 60 + minutes_ + sum(seconds) / 60


def values_drawn(svg: str) -> list[str]:
    return [text.content for text in texts(svg) if text.kind == "value"]


def test_overlapping_texts_are_found() -> None:
    svg = draw(figure(12)).replace(
        'class="legend">element', 'class="legend">element with a very long meaning'
    )
    assert list(overlaps(svg))


def test_every_pane_of_the_figures_of_the_paper_has_its_value_beside_it() -> None:
    for (title, mode), recording in transcripts().items():
        if title.startswith("Paper, figure"):
            shown = [value.split()[0] for value in values_drawn(draw(recording)) if value[0] != "["]
            panes = [
                f"{MINUS * pane.is_retraction}{pane.value}"
                for pane in recording.panes
                if pane.value[0] != "["
            ]
            assert sorted(shown) == sorted(panes), (title, mode)


def test_elements_are_where_the_axes_say() -> None:
    recording = figure(12)
    svg = draw(recording)
    across, upright = along(svg, minutes, False), along(svg, minutes, True)
    drawn = elements_drawn(svg)
    assert [value for value, _, _ in drawn] == ["5", "7", "3", "4", "3", "8", "3", "9", "8", "1"]
    for each, (_, x, y) in zip(recording.inputs, drawn, strict=True):
        assert x == pytest.approx(across(each.event_micros / 60 / SECOND), abs=0.3)
        assert y == pytest.approx(upright(each.clock_micros / 60 / SECOND), abs=0.3)


def test_panes_span_their_window_up_to_the_moment_they_came() -> None:
    svg = draw(figure(12))
    across, upright = along(svg, minutes, False), along(svg, minutes, True)
    found = [each for each in parsed(svg).iter(f"{SVG}rect") if "area" in classes(each)][:5]
    # The values 5, 22, 3, 14 and 12. The 14 refines the 5; the others begin with their first element.
    expected = [
        ("12:00", "12:02", 365.333, 365.999),
        ("12:02", "12:04", 365.666, 367.5),
        ("12:04", "12:06", 366.666, 367.67),
        ("12:00", "12:02", 365.999, 368.333),
        ("12:06", "12:08", 367.333, 369.35),
    ]
    for each, (start, end, begin, come) in zip(found, expected, strict=True):
        top, left = number(each, "y"), number(each, "x")
        assert left == pytest.approx(across(minutes(start)), abs=0.3)
        assert left + number(each, "width") == pytest.approx(across(minutes(end)), abs=0.3)
        assert top == pytest.approx(upright(come + 360), abs=0.4)
        assert top + number(each, "height") == pytest.approx(upright(begin + 360), abs=0.4)


def test_the_watermark_is_a_line_of_steps_and_the_ideal_one_the_diagonal() -> None:
    svg = draw(figure(12))
    across, upright = along(svg, minutes, False), along(svg, minutes, True)
    # The legend comes later, so the first of each class is the line itself.
    found = [(each.get("class", ""), each.get("d", "")) for each in parsed(svg).iter(f"{SVG}path")]
    paths = dict(reversed(found))
    steps = re.findall(r"([HV])([-\d.]+)", paths["watermark"])
    assert {letter for letter, _ in steps} == {"H", "V"}
    corners = [float(place) for letter, place in steps if letter == "H"]
    told = [12 * 60 + minute for minute in (0.444, 2.444, 3.111, 4, 5.333, 6.666, 7.444, 7.777, 8)]
    assert corners == pytest.approx([across(each) for each in told], abs=0.4)
    left, low, right, high = map(float, re.findall(r"[\d.]+", paths["ideal"]))
    slope = (across(726) - across(725)) / (upright(726) - upright(725))
    assert (right - left) / (high - low) == pytest.approx(slope, abs=0.02)
    assert left == pytest.approx(across(725) + (low - upright(725)) * slope, abs=0.5)


def test_late_dropped_and_early_things_look_different_and_are_told_in_words() -> None:
    recording = transcripts()["Figure 2-12: allowed lateness", "streaming"]
    svg = draw(recording)
    assert [each.value for each in recording.inputs if each.is_dropped] == ["9"]
    assert len(circles(svg, "gone")) == 2  # The 9, and the legend.
    assert len(circles(svg, "ring")) == 3  # The 6, the 9, and the legend.
    words = {value.partition(" ")[2] for value in values_drawn(svg)}
    assert words - {""} == {"early", "on time", "late"}
    legend = [text.content for text in texts(svg) if text.kind == "legend"]
    assert legend == [
        *("element", "late element", "dropped element", "watermark", "ideal watermark"),
        *("early pane", "on-time pane", "late pane"),
    ]


def test_values_that_are_taken_back_are_struck_and_come_again_with_a_minus() -> None:
    svg = draw(figure(14))
    strikes = [each for each in parsed(svg).iter(f"{SVG}path") if "strike" in classes(each)]
    assert len(strikes) == 5
    assert sorted(value for value in values_drawn(svg) if value[0] == MINUS) == [
        f"{MINUS}{value}" for value in ("10", "25", "3", "5", "7")
    ]


@pytest.mark.parametrize(
    ("title", "count"),
    [
        ("Paper, figure 14: sessions, retracting", 5),
        ("Retracting: the pane before is taken back first", 0),
    ],
)
def test_a_retraction_has_an_edge_of_its_own_where_no_new_pane_of_its_window_has_one(
    title: str, count: int
) -> None:
    svg = draw(transcripts()[title, "streaming"])
    edges = [each for each in parsed(svg).iter(f"{SVG}path") if {"edge", "back"} <= set(classes(each))]
    assert len(edges) == count + 1  # One is in the legend.


def test_a_global_window_is_as_wide_as_the_drawing() -> None:
    svg = draw(figure(7))
    rects = [each for each in parsed(svg).iter(f"{SVG}rect") if "area" in classes(each)][:4]
    widths = {number(each, "width") for each in rects}
    assert len(widths) == 1
    assert widths.pop() > 0.8 * WIDTH


def test_a_batch_gives_its_panes_above_all_input_in_their_order() -> None:
    svg = draw(figure(10, "batch"))
    edges = [
        float(re.findall(r"[\d.]+", str(each.get("d")))[1])
        for each in parsed(svg).iter(f"{SVG}path")
        if "edge" in classes(each)
    ][:4]
    assert edges == sorted(set(edges), reverse=True)
    assert len(edges) == 4
    assert max(edges) < min(y for _, _, y in elements_drawn(svg))
    assert "all input is read" in [text.content for text in texts(svg)]
    assert (parsed(svg).findtext(f"{SVG}desc") or "").endswith("pane 0, the last one, at the end.")


def test_each_key_has_a_panel_of_its_own_and_very_many_are_counted() -> None:
    inputs = [
        RecordedInput(key * SECOND, SECOND, f"key {key:02}", "7") for key in reversed(range(KEYS_MAX + 3))
    ]
    svg = draw(Recording("keys", tuple(inputs), (), ()))
    assert [text.content for text in texts(svg) if text.kind == "key"] == [
        f"key {key:02}" for key in range(KEYS_MAX)
    ]
    assert f"Of {KEYS_MAX + 3} keys, {KEYS_MAX} are drawn." in [text.content for text in texts(svg)]


def test_texts_of_the_user_are_escaped_and_what_xml_cannot_hold_is_replaced() -> None:
    bad = "</text><script>\"'&\x00\ud800"
    recording = Recording(
        bad,
        (RecordedInput(1, 2, bad, bad), RecordedInput(9 * SECOND, 2, bad, "&")),
        (RecordedPane(0, 10 * SECOND, 3, bad, bad, 0, 0),),
        (),
    )
    svg = draw(recording)
    assert "<script>" not in svg
    assert parsed(svg).get("aria-label") == "</text><script>\"'&\ufffd\ufffd"
    svg.encode()


def test_a_drawing_is_an_image_with_a_title_and_a_description() -> None:
    root = parsed(draw(figure(14)))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Paper, figure 14: sessions, retracting"
    description = root.findtext(f"{SVG}desc") or ""
    assert description.startswith(
        "Streaming: 10 elements, 12 panes: 5 in [12:00:26.64, 12:01:26.64), on time"
    )
    assert f"{MINUS}7 in [12:02:26.64, 12:03:26.64), retracted, at 12:07:37.2" in description


@pytest.mark.parametrize(
    "recording",
    [
        Recording("", (), (), ()),
        Recording("", (), (), (), mode="batch"),
        Recording("", (), (), ((MIN_MICROS, MIN_MICROS), (5, MAX_MICROS), (MAX_MICROS, MAX_MICROS))),
        of_inputs((3, 5, "7")),
        of_inputs((-(10**12), 0, "7"), (10**12, 10**12, "1234567890" * 4)),
        Recording("", (RecordedInput(MIN_MICROS, MIN_MICROS, "", "a"),), (), ((0, 5),), mode="micro_batch"),
        Recording(
            "",
            (RecordedInput(MIN_MICROS, 5, "", "a"), RecordedInput(MAX_MICROS, MAX_MICROS, "", "b")),
            (RecordedPane(MIN_MICROS, MAX_MICROS, MAX_MICROS, "", "c", 3, -1, True, True),),
            (),
            epoch_micros=-(10**17),
        ),
    ],
)
def test_the_smallest_and_the_largest_recordings_are_drawn(recording: Recording) -> None:
    svg = draw(recording)
    assert list(overlaps(svg)) == []
    assert "nan" not in svg
    assert "inf" not in svg.replace("information", "")
    assert "Nothing was recorded." in svg or recording.inputs or recording.panes


def test_a_jump_of_the_watermark_to_the_end_of_time_leaves_the_drawing_with_an_arrow() -> None:
    recording = Recording("", (RecordedInput(0, 0, "", "7"),), (), ((SECOND, MAX_MICROS),))
    arrows = [each for each in parsed(draw(recording)).iter(f"{SVG}path") if "arrow" in classes(each)]
    assert len(arrows) == 1


def test_each_round_takes_the_watermark_once_across_the_drawing() -> None:
    svg = draw(figure(11, "micro_batch"))
    found = [each.get("d", "") for each in parsed(svg).iter(f"{SVG}path") if "watermark" in classes(each)]
    assert len(re.findall("M", found[0])) == len(re.findall("H", found[0])) == 4
    assert len(set(re.findall(r"H[\d.]+", found[0]))) == 1


@pytest.mark.parametrize(("clock_micros", "rings"), [(2 * SECOND, 0), (2 * SECOND + 1, 2)])
def test_an_element_that_comes_just_when_the_watermark_moves_is_not_late(
    clock_micros: int, rings: int
) -> None:
    element = RecordedInput(SECOND, clock_micros, "", "7")
    svg = draw(Recording("", (element,), (), ((2 * SECOND, 5 * SECOND),)))
    assert len(circles(svg, "ring")) == rings


def test_five_hundred_elements_make_no_large_file_and_hide_no_value() -> None:
    inputs = [(each * 7 % 500, each + 500, str(each)) for each in range(500)]
    panes = [
        RecordedPane(start * SECOND, (start + 100) * SECOND, 1001 * SECOND, "", f"{start} in all", 1, 0)
        for start in range(0, 500, 100)
    ]
    recording = Recording("", of_inputs(*inputs).inputs, tuple(panes), ())
    svg = draw(recording)
    assert len(svg) < 90_000
    assert len(values_drawn(svg)) == 5
    assert len(list(parsed(svg).iter(f"{SVG}circle"))) == 501


def test_what_is_too_much_is_counted_and_said() -> None:
    recording = of_inputs(*((each, each, "7") for each in range(3000)))
    svg = draw(Recording("", recording.inputs, (), (), is_complete=False))
    notes = [text.content for text in texts(svg) if text.kind == "note"]
    assert notes == [
        "Of 3000 elements, the first 1000 are drawn.",
        "The recording was full: this is the beginning.",
    ]
    assert len(svg) < 200_000


def test_a_watermark_of_very_many_steps_makes_no_large_file() -> None:
    steps = tuple((each * 1000, each * 1000) for each in range(50_000))
    assert len(draw(Recording("", of_inputs((0, 0, "7"), (50, 50, "8")).inputs, (), steps))) < 25_000


def test_the_same_recording_gives_the_same_drawing() -> None:
    assert draw(figure(14)) == draw(figure(14))


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_have_enough_contrast(colours: dict[str, str]) -> None:
    paper = brightness(colours["paper"])
    for name in ("ink", "quiet", "early", "on-time", "late", "unknown", "back"):
        bright, dark = sorted((paper, brightness(colours[name])), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, name


def brightness(colour: str) -> float:
    """The relative luminance as the accessibility guidelines define it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


MOMENTS = st.one_of(
    st.integers(0, 100 * SECOND),
    st.integers(43_200 * SECOND, 86_400 * SECOND),
    st.integers(-(10**16), 10**16),
    st.sampled_from([MIN_MICROS, MAX_MICROS, 0]),
)
TEXTS = st.text(max_size=12)
KEYS = st.sampled_from(["", "a", "b & c"])


def _panes() -> st.SearchStrategy[RecordedPane]:
    bounds = st.tuples(MOMENTS, MOMENTS).map(sorted)
    timings = st.sampled_from([PaneInfoTiming.EARLY, PaneInfoTiming.ON_TIME, PaneInfoTiming.LATE, 3])
    return st.builds(
        lambda bounds, *rest: RecordedPane(*bounds, *rest),
        *(bounds, MOMENTS, KEYS, TEXTS, timings, st.integers(-1, 3), st.booleans(), st.booleans()),
    )


RECORDINGS = st.builds(
    Recording,
    TEXTS,
    st.lists(st.builds(RecordedInput, MOMENTS, MOMENTS, KEYS, TEXTS), max_size=8).map(tuple),
    st.lists(_panes(), max_size=8).map(tuple),
    st.lists(st.tuples(MOMENTS, MOMENTS), max_size=5).map(lambda steps: tuple(sorted(steps))),
    st.sampled_from(["batch", "micro_batch", "streaming"]),
    st.booleans(),
    st.sampled_from([0, 43_200 * SECOND]),
    st.booleans(),
)


@given(RECORDINGS)
@settings(max_examples=80, deadline=None)
def test_any_recording_gives_a_drawing_whose_texts_can_be_read(recording: Recording) -> None:
    svg = draw(recording)
    assert list(overlaps(svg)) == []
    for each in _places(svg):
        assert -30 <= each <= 3000


def _places(svg: str) -> Iterator[float]:
    """All numbers in paths and attributes that are places."""
    for each in parsed(svg).iter():
        for name in ("x", "y", "cx", "cy"):
            if name in each.attrib:
                yield number(each, name)
