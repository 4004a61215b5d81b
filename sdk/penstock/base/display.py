"""Facts about a pipeline's parts, which drawings of it show (Beam's ``apache_beam.transforms.display``)."""

from __future__ import annotations

import calendar
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NoReturn

from penstock.error import refusal


class HasDisplayData:
    """The base of objects with display data (Beam's ``HasDisplayData``)."""

    def display_data(self) -> dict[str, Any]:
        """Returns facts by key; a subclass overrides it.

        Returns:
            Values that are strings, numbers, booleans, dates, durations, classes, a `DisplayDataItem`, or another
            `HasDisplayData`, whose facts are included.
        """
        return {}

    def _get_display_data_namespace(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}"


class DisplayDataItem:
    """One fact (Beam's ``DisplayDataItem``).

    Args:
        value: A string, number, boolean, ``datetime``, ``timedelta`` or class.
        url: A link.
        label: A name for people.
        namespace: The component's name; `DisplayData` sets it.
        key: The fact's key; `DisplayData` sets it.
        shortValue: A short form; of a class, its bare name by default.

    >>> DisplayDataItem(3, label="Shards", namespace="game", key="shards")
    DisplayDataItem({"key": "shards", "namespace": "game", "type": "INTEGER", "label": "Shards", "value": 3})
    """

    typeDict = {
        str: "STRING",
        int: "INTEGER",
        float: "FLOAT",
        bool: "BOOLEAN",
        timedelta: "DURATION",
        datetime: "TIMESTAMP",
    }

    def __init__(
        self,
        value: Any,
        url: str | None = None,
        label: str | None = None,
        namespace: str | None = None,
        key: str | None = None,
        shortValue: str | None = None,
    ) -> None:
        self.value = value
        self.type = self._get_value_type(value)
        self.url = url
        self.label = label
        self.namespace = namespace
        self.key = key
        self.shortValue = value.__name__ if shortValue is None and self.type == "CLASS" else shortValue
        self._drop_if_none = False
        self._defaults: tuple[Any, ...] = ()

    def drop_if_none(self) -> DisplayDataItem:
        """Leaves the fact out if its value is None; returns the item."""
        self._drop_if_none = True
        return self

    def drop_if_default(self, default: object) -> DisplayDataItem:
        """Leaves the fact out if its value equals `default`; returns the item."""
        self._defaults = (default,)
        return self

    def should_drop(self) -> bool:
        """True if the two methods above leave it out."""
        return (self._drop_if_none and self.value is None) or self.value in self._defaults

    def is_valid(self) -> None:
        """Raises ValueError if key, namespace or value is None, or the value's type has no form for display."""
        for part in ("key", "namespace", "value"):
            if getattr(self, part) is None:
                what = f"Invalid DisplayDataItem {self}: its {part} must not be None"
                raise refusal(ValueError, what, hint=f"give a {part}")
        if self.type is None:
            what = f"Invalid DisplayDataItem: value {self.value} is of an unsupported type"
            hint = "use a string, a number, a boolean, a datetime, a timedelta or a class"
            raise refusal(ValueError, what, hint=hint)

    def get_dict(self) -> dict[str, Any]:
        """Returns the fact as a dictionary; ValueError if it is not valid."""
        self.is_valid()
        return self._get_dict()

    def _get_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "key": self.key,
            "namespace": self.namespace,
            "type": "STRING" if self.type == "CLASS" else self.type,
        }
        optional = {"url": self.url, "shortValue": self.shortValue, "label": self.label}
        shown.update((name, value) for name, value in optional.items() if value is not None)
        shown["value"] = self._format_value(self.value, self.type)
        return shown

    @classmethod
    def _format_value(cls, value: Any, type_: str | None) -> object:
        # Durations and points in time are milliseconds, as in Beam.
        match type_:
            case "CLASS":
                return f"{value.__module__}.{value.__name__}"
            case "DURATION":
                return value.total_seconds() * 1000
            case "TIMESTAMP":
                return calendar.timegm(value.timetuple()) * 1000 + value.microsecond // 1000
        return value

    @classmethod
    def _get_value_type(cls, value: object) -> str | None:
        if value is None:
            return "STRING"
        return cls.typeDict.get(type(value)) or ("CLASS" if isinstance(value, type) else None)

    def __str__(self) -> str:
        """A line for people: what the fact is called, and its short value."""
        is_long = self.shortValue is None
        return f"{self.label or self.key}: {self.value if is_long else self.shortValue}"

    def __repr__(self) -> str:
        return f"DisplayDataItem({json.dumps(self._get_dict(), default=str)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisplayDataItem) and self._get_dict() == other._get_dict()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._get_dict().items())))


class DisplayData:
    """The facts of a component and of those inside it (Beam's ``DisplayData``).

    >>> facts = {"team": "red", "gone": DisplayDataItem(None).drop_if_none()}
    >>> [item.key for item in DisplayData("game", facts).items]
    ['team']
    """

    def __init__(self, namespace: str, display_data_dict: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.items: list[DisplayDataItem] = []
        for key, element in display_data_dict.items():
            self._add(key, element)

    def _add(self, key: str, element: object) -> None:
        if isinstance(element, HasDisplayData):
            self.items += DisplayData(element._get_display_data_namespace(), element.display_data()).items
        elif not isinstance(element, DisplayDataItem):
            self.items.append(DisplayDataItem(element, namespace=self.namespace, key=key))
        elif not element.should_drop():
            element.key = key
            element.namespace = self.namespace
            self.items.append(element)

    @classmethod
    def create_from(
        cls, has_display_data: HasDisplayData, extra_items: Mapping[str, Any] | None = None
    ) -> DisplayData:
        """Returns the facts of a component, and further ones.

        Raises:
            ValueError: If it is not a `HasDisplayData`.
            TypeError: If an extra key is one of the component's own.
        """
        _demand(has_display_data, HasDisplayData)
        facts = dict(**has_display_data.display_data(), **(extra_items or {}))
        return cls(has_display_data._get_display_data_namespace(), facts)

    @classmethod
    def create_from_options(cls, pipeline_options: Any) -> DisplayData:
        """Returns the options that differ from their defaults; a value without a form for display is shown as text."""
        # This module cannot import options, so it recognizes them by a method.
        if not hasattr(pipeline_options, "view_as"):
            _refuse(pipeline_options, "PipelineOptions")
        facts = {
            key: value if DisplayDataItem._get_value_type(value) else str(value)
            for key, value in pipeline_options.display_data().items()
        }
        return cls(pipeline_options._get_display_data_namespace(), facts)


def _demand(thing: object, wanted: type) -> None:
    if not isinstance(thing, wanted):
        _refuse(thing, wanted.__name__)


def _refuse(thing: object, wanted: str) -> NoReturn:
    full_name = f"{type(thing).__module__}.{type(thing).__name__}"
    what = f"Element of class {full_name} does not subclass {wanted}"
    raise refusal(ValueError, what, hint=f"derive the class from {wanted}")
