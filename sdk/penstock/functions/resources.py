"""Resource hints: a step's requirements of the machines that run it (Beam's ``transforms.resources``).

Spark has the same machines for all steps. A run logs once which hints there are, and which Spark settings to use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from penstock.error import refusal
from penstock.options.base import PipelineOptions
from penstock.options.standard import StandardOptions

_UNITS = {"B": 1}
for _power, _letter in enumerate("KMGTP", start=1):
    _UNITS[f"{_letter}B"] = 1000**_power
    _UNITS[f"{_letter}iB"] = 1024**_power


class ResourceHint:
    """A kind of hint (Beam's ``ResourceHint``). For your own, derive a class and register it.

    Attributes:
        urn: The name under which values of this kind are kept, which all spellings share.

    >>> class Disk(ResourceHint):
    ...     urn = "games:disk:v1"
    >>> ResourceHint.register_resource_hint("disk", Disk)
    >>> parse_resource_hints({"disk": "fast"})
    {'games:disk:v1': b'fast'}
    """

    urn: ClassVar[str | None] = None
    _by_name: ClassVar[dict[str, type[ResourceHint]]] = {}
    _by_urn: ClassVar[dict[str, type[ResourceHint]]] = {}

    @classmethod
    def parse(cls, value: object) -> dict[str, bytes]:
        """Returns the value as stored; ValueError if it is not valid. A subclass may accept more than strings."""
        return {str(cls.urn): _text(value).encode("ascii")}

    @classmethod
    def get_merged_value(cls, outer_value: bytes, inner_value: bytes) -> bytes:
        """Returns the value for a step inside of a composite that has a hint of the same kind: the inner value."""
        return inner_value

    @staticmethod
    def get_by_urn(urn: str) -> type[ResourceHint]:
        """Returns the class of hints with a URN; KeyError if there is none."""
        return ResourceHint._by_urn[urn]

    @staticmethod
    def get_by_name(name: str) -> type[ResourceHint]:
        """Returns the class of hints with a name; KeyError if there is none."""
        return ResourceHint._by_name[name]

    @staticmethod
    def is_registered(name: str) -> bool:
        """True if a name is known."""
        return name in ResourceHint._by_name

    @staticmethod
    def register_resource_hint(hint_name: str, hint_class: type[ResourceHint]) -> None:
        """Registers a class of hints under a name; a class can have several."""
        if not (isinstance(hint_class, type) and issubclass(hint_class, ResourceHint) and hint_class.urn):
            what = f"the resource hint {hint_name} needs a class of hints with a urn, not {hint_class!r}"
            raise refusal(TypeError, what, hint="derive it from ResourceHint, and set urn = '...'")
        ResourceHint._by_name[hint_name] = hint_class
        ResourceHint._by_urn[hint_class.urn] = hint_class


class AcceleratorHint(ResourceHint):
    """Hardware such as a GPU (Beam's name); the inner value counts."""

    urn = "beam:resources:accelerator:v1"


class MinRamHint(ResourceHint):
    """The minimum memory (Beam's name), ``"4 GiB"`` or a number of bytes; the larger value counts.

    >>> MinRamHint.parse("1.5 KiB")
    {'beam:resources:min_ram_bytes:v1': b'1536'}
    """

    urn = "beam:resources:min_ram_bytes:v1"

    @classmethod
    def parse(cls, value: object) -> dict[str, bytes]:
        return {cls.urn: str(_storage_bytes(value)).encode("ascii")}

    @classmethod
    def get_merged_value(cls, outer_value: bytes, inner_value: bytes) -> bytes:
        return max(outer_value, inner_value, key=int)


class CpuCountHint(ResourceHint):
    """The number of processors (Beam's name), as a string such as ``"4"``; the larger value counts."""

    urn = "beam:resources:cpu_count:v1"

    @classmethod
    def parse(cls, value: object) -> dict[str, bytes]:
        return {cls.urn: _number(value)}

    @classmethod
    def get_merged_value(cls, outer_value: bytes, inner_value: bytes) -> bytes:
        return max(outer_value, inner_value, key=int)


class MaxActiveBundlesPerWorkerHint(ResourceHint):
    """The number of bundles that a worker has at a time (Beam's name), as a string such as ``"2"``; values add up."""

    urn = "beam:resources:max_active_bundles_per_worker:v1"

    @classmethod
    def parse(cls, value: object) -> dict[str, bytes]:
        return {cls.urn: _number(value)}

    @classmethod
    def get_merged_value(cls, outer_value: bytes, inner_value: bytes) -> bytes:
        return str(int(outer_value) + int(inner_value)).encode("ascii")


_KINDS: dict[type[ResourceHint], tuple[str, ...]] = {
    AcceleratorHint: ("accelerator",),
    MinRamHint: ("min_ram", "minRam"),
    CpuCountHint: ("cpu_count", "cpuCount"),
    MaxActiveBundlesPerWorkerHint: (
        "max_active_bundles_per_worker",
        "max_active_bundle_per_worker",
        "MaxActiveBundlesPerWorker",
        "MaxActiveBundlePerWorker",
    ),
}
for _kind, _names in _KINDS.items():
    for _name in _names:
        ResourceHint.register_resource_hint(_name, _kind)


def parse_resource_hints(hints: Mapping[str, Any]) -> dict[str, bytes]:
    """Checks hints, and returns them under the names and with the values under which they are kept.

    Args:
        hints: Values by Beam's names (``accelerator``, ``min_ram``, ``cpu_count``, ``max_active_bundles_per_worker``,
            and the camel-case spellings) and by the names of your own hints.

    Raises:
        ValueError: If a name is unknown, or a value is not valid.

    >>> parse_resource_hints({"minRam": "1.5 KiB", "cpu_count": "2"})
    {'beam:resources:min_ram_bytes:v1': b'1536', 'beam:resources:cpu_count:v1': b'2'}
    """
    parsed: dict[str, bytes] = {}
    for name, value in hints.items():
        if not ResourceHint.is_registered(name):
            known = ", ".join(ResourceHint._by_name)
            raise refusal(ValueError, f"Unknown resource hint: {name}", hint=f"known are {known}")
        try:
            parsed.update(ResourceHint.get_by_name(name).parse(value))
        except ValueError as error:
            what = f"Resource hint {name} has invalid value {value!r}"
            raise refusal(ValueError, what, hint=str(error)) from error
    return parsed


def resource_hints_from_options(options: PipelineOptions | None) -> dict[str, bytes]:
    """Returns the hints among a pipeline's options, which are ``name=value`` each, or a dict (Beam's name)."""
    given = {} if options is None else options.view_as(StandardOptions).resource_hints or {}
    if not isinstance(given, Mapping):
        given = {name: value for name, _, value in (hint.partition("=") for hint in given)}
    return parse_resource_hints(given)


def merge_resource_hints(
    outer_hints: Mapping[str, bytes], inner_hints: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Returns the hints of a step inside of a composite with hints; the class of a hint says which value counts."""
    merged = dict(inner_hints)
    for urn, outer in outer_hints.items():
        if urn in merged:
            merged[urn] = ResourceHint.get_by_urn(urn).get_merged_value(outer, merged[urn])
        else:
            merged[urn] = outer
    return merged


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("write a string, such as '4'")
    return value


def _number(value: Any) -> bytes:
    if not re.fullmatch(r"\s*\d+\s*", _text(value), re.ASCII):
        raise ValueError("write an integer as a string, such as '4'")
    return value.strip().encode("ascii")  # type: ignore[no-any-return]


def _storage_bytes(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"(\d*\.?\d+)([A-Za-z]+)", _text(value).replace(" ", ""), re.ASCII)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"write a number and one of {', '.join(_UNITS)}, such as '4 GiB'")
    return round(float(match[1]) * _UNITS[match[2]])
