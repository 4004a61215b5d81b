"""The streams of the work that keeps something for each key: files, and the totals that must come out of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from stream_inputs import cut, last_line, parsed, write_stream, write_totals

EXPIRY_SECONDS = 600
"""The time after its last event at which a user is forgotten."""

JOIN_SECONDS = 600
"""The size of the windows in which orders and payments match."""

SIDES = ("orders", "payments")

_SEED = 5
_FIRST_SECOND = 1_600_000_200
_SECONDS = 2_000
"""The event time from the first event to the last, however many there are."""

_DISORDER_SECONDS_MAX = 60
_PAID_AFTER_SECONDS_MAX = 120
_TWICE, _NEVER = 0.1, 0.1
"""Which part of the orders are paid in two payments, and which never."""


def user_files(folder: Path, events: int, users: int, files: int) -> Path:
    """Writes the events of users, and the total of each user, unless they exist; returns the folder of the
    files.
    """
    target = folder / f"stateful-{events}-of-{users}-in-{files}"
    if not target.exists():
        lines = _user_lines(events, users)
        totals: Counter[str] = Counter()
        for user, value, _ in (parsed(line, 0) for line in lines):
            totals[user] += value
        write_totals(target, totals)
        write_stream(target, cut([*lines, last_line(lines)], files))
    return target


def each_user_once(folder: Path, users: int) -> Path:
    """Writes an event of each user to one file, unless it is there; nothing expires by it."""
    target = folder / f"stateful-fill-{users}"
    if not target.exists():
        write_stream(target, [_any_lines("user", users)])
    return target


def each_order_paid(folder: Path, orders: int) -> Path:
    """Writes orders and a payment of each to a file of their own, unless they are there; no window ends."""
    target = folder / f"join-fill-{orders}"
    for name in SIDES:
        if not (target / name).exists():
            write_stream(target / name, [_any_lines("order", orders)])
    return target


def _any_lines(kind: str, keys: int) -> list[str]:
    draw = random.Random(_SEED).random
    return [
        f"{kind}{number},any,{int(draw() * 100)},{_FIRST_SECOND + int(draw() * JOIN_SECONDS)}"
        for number in range(keys)
    ]


def _user_lines(events: int, users: int) -> list[str]:
    draw = random.Random(_SEED).random
    lines = []
    for number in range(events):
        second = _second(number, events) - int(draw() * _DISORDER_SECONDS_MAX)
        lines.append(f"user{int(draw() * users)},team,{int(draw() * 20)},{second}")
    return lines


def order_files(folder: Path, events: int, files: int) -> Path:
    """Writes orders and their payments, each in its own folder, unless they exist; returns the folder of both.

    There are about as many orders as payments. Beside them are the totals: for each order and window that has
    both, the price minus the payment, over all pairs.
    """
    target = folder / f"join-{events}-in-{files}"
    if not target.exists():
        orders, payments = _orders_and_payments(events)
        unfinished = folder / f"{target.name}.unfinished"
        end = last_line([orders[-1], payments[-1]])
        for name, lines in zip(SIDES, (orders, payments), strict=True):
            write_stream(unfinished / name, cut([*lines, end], files))
        write_totals(target, _matched(orders, payments))
        unfinished.rename(target)
    return target


def _orders_and_payments(events: int) -> tuple[list[str], list[str]]:
    draw = random.Random(_SEED).random
    orders, payments = [], []
    for number in range(events // 2):
        second = _second(number, events // 2)
        orders.append((second, f"order{number},shop,{int(draw() * 100)}"))
        kind = draw()
        times = 0 if kind < _NEVER else 2 if kind < _NEVER + _TWICE else 1
        for _ in range(times):
            paid_second = second + int(draw() * _PAID_AFTER_SECONDS_MAX)
            payments.append((paid_second, f"order{number},bank,{int(draw() * 100)}"))
    payments.sort(key=lambda payment: payment[0])
    written = [[f"{line},{second}" for second, line in lines] for lines in (orders, payments)]
    return written[0], written[1]


def _matched(orders: Iterable[str], payments: Iterable[str]) -> Counter[str]:
    prices: dict[tuple[str, int], int] = {}
    for name, price, second in (parsed(line, 0) for line in orders):
        prices[name, join_start(second)] = price
    totals: Counter[str] = Counter()
    for name, paid, second in (parsed(line, 0) for line in payments):
        start = join_start(second)
        if (name, start) in prices:
            totals[f"{name} {start}"] += prices[name, start] - paid
    return totals


def join_start(second: int) -> int:
    """The second at which the window of an order or a payment starts.

    >>> join_start(1_600_000_201)
    1600000200
    """
    return second // JOIN_SECONDS * JOIN_SECONDS


def _second(number: int, events: int) -> int:
    return _FIRST_SECOND + number * _SECONDS // events
