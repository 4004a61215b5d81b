"""The laws of refinement: what panes of all modes leave in the end, and that nothing is lost or counted twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

from penstock.machines.records import MIN_MICROS, AddElement, AdvanceWatermark, DropReason
from penstock.machines.reference_engine import ReferenceEngine
from penstock.machines.triggers import looks_at_last_pane
from penstock.transforms.trigger import AccumulationMode, ClosingBehavior
from tests.machines.generated import FIXED, FOREVER, SESSIONS, Case, may_finish, may_open_again
from tests.machines.generated_events import clock_apart, only_arrivals, random_case
from tests.machines.law_book import law
from tests.machines.outcomes import (
    ACCUMULATING,
    DISCARDING,
    ENGINES,
    RETRACTING,
    Place,
    by_place,
    contains,
    dropped,
    finals,
    latest,
    net,
    panes,
    played,
    reckoned,
    settled,
    settled_together,
    together,
    windows_of,
)


def blind_case(random: Random) -> Case:
    """One whose trigger does not look at results, and so fires at the same moments in all modes."""
    while True:
        case = random_case(random)
        if not looks_at_last_pane(case.windowing.triggerfn):
            return case


@law(blind_case, cases=300)
def the_modes_agree(case: Case) -> None:
    """The last accumulating pane of a window = all its discarding panes together = what its retracting panes leave.

    Over all elements that were not dropped, for triggers that finish as well, since a trigger fires what is there when
    it finishes. (Design, section 3, touchstones; paper, section 2.3; Streaming Systems, table 2-1.)
    """
    outcomes = {mode: played(case, mode) for mode in AccumulationMode}
    assert len({str([*dropped(outcome)]) for outcome in outcomes.values()}) == 1
    pieces = by_place(outcomes[DISCARDING])
    for key in {key for key, _ in pieces}:
        values = [value for place, several in pieces.items() if place[0] == key for value in several]
        whole = [value for of_key, _, value in net(outcomes[RETRACTING]).elements() if of_key == key]
        assert together(case, values) == settled_together(case, whole)
    if may_open_again(case.windowing):
        return
    left = finals(outcomes[RETRACTING])
    last = latest(outcomes[ACCUMULATING])
    assert left == {place: last.get(place) for place in left}
    if not case.windowing.windowfn.is_merging():
        assert left.keys() == last.keys() == pieces.keys()
        assert left == {place: together(case, values) for place, values in pieces.items()}


def endless_case(random: Random) -> Case:
    """One whose trigger goes on for ever, in windows that do not merge or sessions that take all late elements."""
    windows = random.choice((FIXED, SESSIONS))
    lateness = (0, 4, FOREVER) if windows is FIXED else (FOREVER,)
    return random_case(random, windows=(windows,), is_endless=True, lateness=lateness)


@law(endless_case, cases=300)
def the_end_is_as_reckoned(case: Case) -> None:
    """What is left in the end is, in each window, the combination of all its elements that were not dropped.

    And so it is in batch and in micro-batch, where nothing was dropped. (Paper, sections 1 and 2.4: the engine changes
    latency and cost, never the results.)
    """
    outcome = played(case, RETRACTING)
    losses = list(dropped(outcome))
    left = finals(outcome)
    assert left == reckoned(case, losses)
    for place, values in by_place(played(case, DISCARDING)).items():
        if not case.windowing.windowfn.is_merging():
            assert together(case, values) == left[place]
        else:
            assert [one for one in left if one[0] == place[0] and contains(one[1], place[1])]
    if not losses:
        for engine in ("micro_batch", "batch"):
            assert finals(played(case, RETRACTING, engine)) == left, engine


@law(random_case, cases=300)
def no_value_is_taken_back_that_does_not_stand(case: Case) -> None:
    """At no moment does a value of a window stand less than once, or two values of a window together.

    For all triggers, windows and engines; two may stand where sessions form anew after one with the same bounds was
    closed. In the end the last accumulating values are left, where the trigger fires at the same moments in both modes.
    (Design, section 3, touchstones: no prefix of a changelog nets to a negative count.)
    """
    for engine in ENGINES:
        outcome = played(case, RETRACTING, engine)
        standing: defaultdict[Place, list[object]] = defaultdict(list)
        for key, pane in panes(outcome):
            place, value = (key, pane.window), settled(pane.value)
            if pane.kind.is_retraction:
                assert value in standing[place], f"{value} does not stand"
                standing[place].remove(value)
            else:
                standing[place].append(value)
                assert len(standing[place]) == 1 or may_open_again(case.windowing), f"two values of {place}"
        if not looks_at_last_pane(case.windowing.triggerfn):
            last = latest(played(case, ACCUMULATING, engine))
            assert all(values[-1] == last[place] for place, values in standing.items() if values)


@law(random_case, cases=300)
def nothing_is_lost(case: Case) -> None:
    """Every element is in exactly one discarding pane of each of its windows, or is given out as dropped, and why.

    In windows that do not merge it is dropped if and only if the window has expired, or its trigger has finished; which
    a last pane says, unless nothing was new then. (Beam's closing panes; Streaming Systems, chapters 2 and 5.)
    """
    outcome = played(case, DISCARDING)
    expected = Counter(
        (event.key, repr(event.value))
        for event in only_arrivals(case.events)
        for _ in windows_of(case, event)
    )
    found = Counter((key, repr(loss.element.value)) for key, loss in dropped(outcome))
    if case.combine in ("values", "listing"):
        found += Counter((key, repr(value)) for key, pane in panes(outcome) for value in pane.value)
        assert found == expected
    else:
        assert found <= expected
    if not may_finish(case.windowing):
        assert all(loss.reason is DropReason.EXPIRED for _, loss in dropped(outcome))
    if not case.windowing.windowfn.is_merging():
        _check_reasons(case)


def _check_reasons(case: Case) -> None:
    player = ReferenceEngine(case.machine(DISCARDING))
    ended: set[object] = set()
    watermark_micros = MIN_MICROS
    for event in clock_apart(case.events):
        before = set(ended)
        outcome = player.play(event)
        ended |= {(key, pane.window) for key, pane in panes(outcome) if pane.info.is_last}
        if isinstance(event, AdvanceWatermark):
            watermark_micros = event.watermark_micros
        if not isinstance(event, AddElement):
            continue
        losses = {loss.element.windows[0]: loss.reason for _, loss in dropped(outcome)}
        for window in windows_of(case, event):
            expiry_micros = window.end_micros + case.windowing.allowed_lateness.micros
            if watermark_micros >= expiry_micros:
                assert losses.get(window) is DropReason.EXPIRED
            elif (event.key, window) in before:
                assert losses.get(window) is DropReason.FINISHED
            elif case.windowing.closing_behavior is ClosingBehavior.FIRE_ALWAYS:
                assert window not in losses
            else:
                # A trigger that finishes where nothing is new gives no last pane.
                assert losses.get(window) is not DropReason.EXPIRED
