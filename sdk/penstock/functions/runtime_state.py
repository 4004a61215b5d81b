"""Cells of state as the methods of a DoFn see them; a runner implements them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class RuntimeState:
    """A cell of state as a method sees it (Beam's ``RuntimeState``)."""

    def prefetch(self) -> None:
        """Says that the state will be read soon; does nothing."""

    def finalize(self) -> None:
        """Called when nothing more will be done to it; does nothing."""


class ReadModifyWriteRuntimeState(RuntimeState):
    """One value."""

    def read(self) -> Any:
        """The value; None if there is none."""
        raise NotImplementedError

    def write(self, value: Any) -> None:
        """Replaces the value."""
        raise NotImplementedError

    def clear(self) -> None:
        """Removes the value."""
        raise NotImplementedError

    def commit(self) -> None:
        """Stores what was done."""
        raise NotImplementedError


class AccumulatingRuntimeState(RuntimeState):
    """Something that values are added to."""

    def read(self) -> Iterable[Any]:
        """What is there."""
        raise NotImplementedError

    def add(self, value: Any) -> None:
        """Adds a value."""
        raise NotImplementedError

    def clear(self) -> None:
        """Removes everything."""
        raise NotImplementedError

    def commit(self) -> None:
        """Stores what was done."""
        raise NotImplementedError


class BagRuntimeState(AccumulatingRuntimeState):
    """Values in no order."""


class SetRuntimeState(AccumulatingRuntimeState):
    """Distinct values."""


class CombiningValueRuntimeState(AccumulatingRuntimeState):
    """Values combined to one; `read` gives the result."""


class MapRuntimeState(RuntimeState):
    """Values by keys (penstock's own, after Java's ``MapState``)."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key."""
        raise NotImplementedError

    def contains(self, key: Any) -> bool:
        """Whether a key is there."""
        raise NotImplementedError

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of a key, whatever was there."""
        raise NotImplementedError

    def put_if_absent(self, key: Any, value: Any) -> bool:
        """Sets the value of a key that has none; whether it had none."""
        raise NotImplementedError

    def remove(self, key: Any) -> None:
        """Removes a key, if it is there."""
        raise NotImplementedError

    def keys(self) -> Iterable[Any]:
        """The keys."""
        raise NotImplementedError

    def values(self) -> Iterable[Any]:
        """The values."""
        raise NotImplementedError

    def entries(self) -> Iterable[tuple[Any, Any]]:
        """Pairs of a key and its value."""
        raise NotImplementedError

    def clear(self) -> None:
        """Removes everything."""
        raise NotImplementedError

    def commit(self) -> None:
        """Stores what was done."""
        raise NotImplementedError


class OrderedListRuntimeState(AccumulatingRuntimeState):
    """Pairs of timestamp and value, in the order of timestamps."""

    def read_range(self, min_time_stamp: Any, limit_time_stamp: Any) -> Iterable[tuple[Any, Any]]:
        """The pairs from one timestamp on, before another."""
        raise NotImplementedError

    def clear_range(self, min_time_stamp: Any, limit_time_stamp: Any) -> None:
        """Removes the pairs from one timestamp on, before another."""
        raise NotImplementedError
