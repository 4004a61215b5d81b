"""Resource hints: what a step would like the machines that run it to have. A runner may ignore them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from penstock.error import three_parts

__all__ = ["merge_resource_hints", "parse_resource_hints"]

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGTP", start=1):
    _UNITS[f"{_letter}B"] = 1000**_power
    _UNITS[f"{_letter}iB"] = 1024**_power


def _storage_bytes(value: Any) -> int:
    """A number of bytes from ``"4 GiB"`` or a number."""
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"\s*([\d.]+)\s*([A-Za-z]*)\s*", value)
    if match is None or match[2] not in _UNITS:
        raise ValueError("it is no storage size")
    return round(float(match[1]) * _UNITS[match[2]])


_HINTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "accelerator": ("accelerator", str),
    "min_ram": ("min_ram", _storage_bytes),
    "minRam": ("min_ram", _storage_bytes),
    "cpu_count": ("cpu_count", int),
    "cpuCount": ("cpu_count", int),
    "max_active_bundles_per_worker": ("max_active_bundles_per_worker", int),
    "max_active_bundle_per_worker": ("max_active_bundles_per_worker", int),
    "MaxActiveBundlesPerWorker": ("max_active_bundles_per_worker", int),
}


def parse_resource_hints(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Checks hints and gives them their plain names and values.

    Args:
        hints: Beam's names (``accelerator``, ``min_ram``, ``cpu_count``, ``max_active_bundles_per_worker``,
            and the camel-case spellings), with values; memory is in bytes, or text such as ``"4 GiB"``.

    Returns:
        The hints; memory as a number of bytes.

    Raises:
        ValueError: If a name is unknown, or a value makes no sense.

    >>> parse_resource_hints({"minRam": "1.5 KiB"})
    {'min_ram': 1536}
    """
    parsed = {}
    for name, value in hints.items():
        if name not in _HINTS:
            raise ValueError(
                three_parts(f"Unknown resource hint: {name}", hint=f"known are {', '.join(_HINTS)}")
            )
        plain_name, parse = _HINTS[name]
        try:
            parsed[plain_name] = parse(value)
        except (ValueError, TypeError) as error:
            raise ValueError(
                three_parts(f"Resource hint {name} has invalid value {value!r}", hint=str(error))
            ) from error
    return parsed


def merge_resource_hints(outer_hints: Mapping[str, Any], inner_hints: Mapping[str, Any]) -> dict[str, Any]:
    """The hints of a step inside of a composite that has hints itself.

    Memory and processors take the larger value, bundles per worker the sum, anything else the inner value.

    >>> merge_resource_hints({"min_ram": 5, "accelerator": "a"}, {"min_ram": 3})
    {'min_ram': 5, 'accelerator': 'a'}
    """
    merged = dict(inner_hints)
    for name, outer in outer_hints.items():
        if name not in merged:
            merged[name] = outer
        elif name in ("min_ram", "cpu_count"):
            merged[name] = max(outer, merged[name])
        elif name == "max_active_bundles_per_worker":
            merged[name] += outer
    return merged
