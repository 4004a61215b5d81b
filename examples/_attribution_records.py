"""The records that `attribution.py` reads, in a module of their own so that workers can import their classes."""

from __future__ import annotations

from typing import NamedTuple


class Visit(NamedTuple):
    """Somebody saw a page."""

    url: str
    seconds: float
    referer: str
    is_goal: bool = False


class Impression(NamedTuple):
    """Somebody was shown an advertisement."""

    number: int
    source: str
    target: str
    seconds: float
