"""Questions that are answered by walking a trigger's description."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.windows.trigger_base import TriggerFn
from penstock.windows.trigger_composites import AfterAll, AfterAny, AfterEach, Repeatedly
from penstock.windows.trigger_times import AfterWatermarkPercentile
from penstock.windows.watermark_triggers import AfterWatermark, DefaultTrigger, Never


def every_part(trigger: TriggerFn) -> Iterator[TriggerFn]:
    """A trigger and all that it is made of.

    >>> from penstock.transforms.trigger import AfterCount
    >>> [type(part).__name__ for part in every_part(AfterWatermark(early=AfterCount(5)))]
    ['AfterWatermark', 'Repeatedly', 'AfterCount']
    """
    yield trigger
    match trigger:
        case Repeatedly(underlying):
            yield from every_part(underlying)
        case AfterWatermark(early, late):
            for part in (early, late):
                if part is not None:
                    yield from every_part(part)
        case AfterAny(parts) | AfterAll(parts) | AfterEach(parts):
            for part in parts:
                yield from every_part(part)


def can_fire_early(trigger: TriggerFn) -> bool:
    """Whether a trigger can fire before the watermark comes to the end of the window.

    In the global window, that end is the end of all time.

    >>> from penstock.transforms.trigger import AfterCount
    >>> can_fire_early(AfterWatermark(early=AfterCount(5))), can_fire_early(AfterWatermark(late=AfterCount(5)))
    (True, False)
    """
    match trigger:
        case DefaultTrigger() | Never() | AfterWatermarkPercentile():
            return False
        case AfterWatermark(early):
            return early is not None and can_fire_early(early)
        case Repeatedly(underlying):
            return can_fire_early(underlying)
        case AfterAny(parts):
            return any(map(can_fire_early, parts))
        case AfterAll(parts):
            return all(map(can_fire_early, parts))
        case AfterEach(parts):
            return can_fire_early(parts[0])
    return True
