"""Regular expressions over elements that are text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.construction.ptransform import PTransform, ptransform_fn, shown_as
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.transforms.elements.pardo import FlatMap, Map
from penstock.typehints import List, Tuple, with_input_types

Pattern = str | re.Pattern[str]
Group = int | str

_ALL = "__regex_all_groups"


def _first_of(find: Callable[[str], re.Match[str] | None], *groups: Group) -> Callable[[str], Iterator[Any]]:
    """Returns a function from an element to the group of its first match, or to a tuple of several groups."""

    def found(element: str) -> Iterator[Any]:
        if hit := find(element):
            yield hit.group(*groups)

    return found


def _all_groups_of(regex: Pattern) -> Callable[[str], Iterator[list[Any]]]:
    match = re.compile(regex).match

    def found(element: str) -> Iterator[list[Any]]:
        if hit := match(element):
            yield [hit.group(number) for number in range((hit.lastindex or 0) + 1)]

    return found


def _find_all_of(regex: Pattern, group: Group, output_empty: bool) -> Callable[[str], Iterator[list[Any]]]:
    pattern = re.compile(regex)
    if group == _ALL and not pattern.groups:
        what = "find_all is asked for all groups of a pattern without groups"
        raise refusal(ValueError, what, where="at Regex.find_all", hint="put a part of it in parentheses")

    def found(element: str) -> Iterator[list[Any]]:
        hits = pattern.finditer(element)
        if group == _ALL:
            yield [(hit.group(), hit.group(1)) for hit in hits if output_empty or hit.group(1)]
        else:
            yield [hit.group(group) for hit in hits if output_empty or hit.group(group)]

    return found


def _find_kv_of(regex: Pattern, *groups: Group) -> Callable[[str], Iterator[Any]]:
    finditer = re.compile(regex).finditer

    def found(element: str) -> Iterator[Any]:
        return (hit.group(*groups) for hit in finditer(element))

    return found


def _replaced_by(regex: Pattern, replacement: str, count: int) -> Callable[[str], str]:
    substitute = re.compile(regex).sub

    def replaced(element: str) -> str:
        return substitute(replacement, element, count=count)

    return replaced


def _split_of(regex: Pattern, output_empty: bool) -> Callable[[str], list[Any]]:
    split = re.compile(regex).split

    def parts(element: str) -> list[Any]:
        return [part for part in split(element) if part or output_empty]

    return parts


if TYPE_CHECKING:

    class _TextToText(PTransform[Any, Any]):
        def expand(self, pcoll: PCollection[str]) -> PCollection[str]: ...

    class _TextToTexts(PTransform[Any, Any]):
        def expand(self, pcoll: PCollection[str]) -> PCollection[list[str]]: ...


class Regex:
    r"""Applies regular expressions to elements that are strings (Beam's ``Regex``).

    Each takes the pattern as a string or compiled. A group is a number or a name; 0 is the whole match.

    Example: ``lines | Regex.find(r"\d+")`` emits the first number of each line that has one.
    """

    ALL = _ALL

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def matches(pcoll: PCollection[Any], regex: Pattern, group: Group = 0) -> PCollection[Any]:
        """Emits the group, for each element that the pattern matches at its start."""
        return pcoll | FlatMap(_first_of(re.compile(regex).match, group)).with_output_types(str)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def all_matches(pcoll: PCollection[Any], regex: Pattern) -> PCollection[Any]:
        """Emits the list of the match and its groups, for each element that the pattern matches at its start."""
        return pcoll | FlatMap(_all_groups_of(regex)).with_output_types(List[str])

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def matches_kv(
        pcoll: PCollection[Any], regex: Pattern, keyGroup: Group, valueGroup: Group = 0
    ) -> PCollection[Any]:
        """Emits a KV of two groups, for each element that the pattern matches at its start."""
        found = _first_of(re.compile(regex).match, keyGroup, valueGroup)
        return pcoll | FlatMap(found).with_output_types(Tuple[str, str])

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def find(pcoll: Any, regex: Pattern, group: Group = 0) -> Any:
        """Emits the group of the first match, for each element that has one anywhere."""
        return pcoll | FlatMap(_first_of(re.compile(regex).search, group)).with_output_types(str)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def find_all(pcoll: Any, regex: Pattern, group: Group = 0, outputEmpty: bool = True) -> Any:
        """Emits, for each element, the list of the groups of all its matches, without empty groups unless
        `outputEmpty`.

        With the group `Regex.ALL`, it is a list of pairs of the whole match and its first group.
        """
        output_type = List[Tuple[str, str]] if group == _ALL else List[str]
        return pcoll | FlatMap(_find_all_of(regex, group, outputEmpty)).with_output_types(output_type)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def find_kv(
        pcoll: PCollection[Any], regex: Pattern, keyGroup: Group, valueGroup: Group = 0
    ) -> PCollection[Any]:
        """Emits a KV of two groups for each match anywhere in an element."""
        return pcoll | FlatMap(_find_kv_of(regex, keyGroup, valueGroup)).with_output_types(Tuple[str, str])

    @staticmethod
    @shown_as(lambda: _TextToText())
    @ptransform_fn
    @with_input_types(str)
    def replace_all(pcoll: PCollection[Any], regex: Pattern, replacement: str) -> PCollection[Any]:
        """Emits each element with every match replaced."""
        return pcoll | Map(_replaced_by(regex, replacement, 0)).with_output_types(str)

    @staticmethod
    @shown_as(lambda: _TextToText())
    @ptransform_fn
    @with_input_types(str)
    def replace_first(pcoll: PCollection[Any], regex: Pattern, replacement: str) -> PCollection[Any]:
        """Emits each element with its first match replaced."""
        return pcoll | Map(_replaced_by(regex, replacement, 1)).with_output_types(str)

    @staticmethod
    @shown_as(lambda: _TextToTexts())
    @ptransform_fn
    @with_input_types(str)
    def split(pcoll: PCollection[Any], regex: Pattern, outputEmpty: bool = False) -> Any:
        """Emits each element split at the matches, as a list; without empty parts unless `outputEmpty`."""
        return pcoll | Map(_split_of(regex, bool(outputEmpty))).with_output_types(List[str])
