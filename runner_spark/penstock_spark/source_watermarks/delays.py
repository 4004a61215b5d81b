"""A histogram of the delays with which a source's elements arrive, and the percentile watermarks that follow from it.

A delay is the time from an element's event time to its arrival. If the share p of all elements arrives within a delay
d, then about the share p of the events before (now - d) has arrived.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import sub
from typing import NamedTuple

from penstock.machines.records import MIN_MICROS

_SIGNIFICANT_BITS = 5
_FORGET_ABOVE = 2**16
_FORGOTTEN_BELOW = 2**-10
_ROUNDING_ERROR = 1e-9


class Delays(NamedTuple):
    """The delays of some elements; in a state, the delays of all elements so far, where old delays weigh less."""

    weights: Mapping[int, float] = {}  # How many elements have each delay (in microseconds, rounded up).
    latest_micros: int = MIN_MICROS  # The largest event time.


def measure_delays(timestamps_micros: list[int], arrivals_micros: int | list[int]) -> Delays:
    """Returns the delays of one or more elements.

    >>> measure_delays([5, 9, 40], 40)
    Delays(weights={36: 1, 31: 1, 0: 1}, latest_micros=40)
    """
    if isinstance(arrivals_micros, int):
        found = [arrivals_micros - timestamp for timestamp in timestamps_micros]
    else:
        found = list(map(sub, arrivals_micros, timestamps_micros))
    return Delays(dict(Counter(map(_round_up, found))), max(timestamps_micros))


def merge_delays(parts: Iterable[Delays]) -> Delays:
    weights: dict[int, float] = {}
    latest_micros = MIN_MICROS
    for part in parts:
        latest_micros = max(latest_micros, part.latest_micros)
        for delay, weight in part.weights.items():
            weights[delay] = weights.get(delay, 0) + weight
    return Delays(weights, latest_micros)


def advance_delays(state: Delays, news: Delays | None) -> Delays:
    """Returns the next state; if it holds many delays, old delays weigh half as much as before."""
    if sum(state.weights.values()) > _FORGET_ABOVE:
        halves = {delay: weight / 2 for delay, weight in state.weights.items()}
        kept = {delay: weight for delay, weight in halves.items() if weight >= _FORGOTTEN_BELOW}
        state = state._replace(weights=kept)
    return merge_delays([state, news]) if news else state


def percentile_micros(state: Delays, shares: Iterable[float], clock_micros: int) -> dict[float, int]:
    """Returns the watermark of each share; the minimum if there are too few elements.

    >>> percentile_micros(Delays({10: 9, 80: 1}, latest_micros=100), [0.5, 0.9, 0.95], clock_micros=100)
    {0.5: 90, 0.9: 90, 0.95: -9223372036854775000}
    """
    found = sorted(state.weights)
    ranks = list(accumulate(state.weights[delay] for delay in found))
    total = ranks[-1] if ranks else 0.0

    def of_share(share: float) -> int:
        if total * (1 - share) < 1 - _ROUNDING_ERROR:
            return MIN_MICROS
        delay = found[bisect_left(ranks, share * total - _ROUNDING_ERROR)]
        return min(clock_micros - delay, state.latest_micros)

    return {share: of_share(share) for share in shares}


def _round_up(delay_micros: int) -> int:
    """Rounds up to a number with few significant bits, at least 0, so that few different numbers occur."""
    if delay_micros <= 0:
        return 0
    bits = max(0, delay_micros.bit_length() - _SIGNIFICANT_BITS)
    return -(-delay_micros >> bits) << bits
