"""Regular expressions over elements that are text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from penstock.construction.ptransform import ptransform_fn
from penstock.error import refusal
from penstock.transforms.pardo import FlatMap, Map
from penstock.typehints import List, Tuple, with_input_types

Pattern = str | re.Pattern[str]
Group = int | str

_ALL = "__regex_all_groups"


def matches_of(regex: Pattern, group: Group = 0) -> Callable[[str], Iterator[Any]]:
    """The function of `Regex.matches`.

    >>> list(matches_of("a(b+)", 1)("abbc")), list(matches_of("b")("abbc"))
    (['bb'], [])
    """
    match = re.compile(regex).match

    def found(element: str) -> Iterator[Any]:
        if hit := match(element):
            yield hit.group(group)

    return found


def all_matches_of(regex: Pattern) -> Callable[[str], Iterator[list[Any]]]:
    """The function of `Regex.all_matches`.

    >>> list(all_matches_of("a(b+)(c)")("abbcd"))
    [['abbc', 'bb', 'c']]
    """
    match = re.compile(regex).match

    def found(element: str) -> Iterator[list[Any]]:
        if hit := match(element):
            yield [hit.group(number) for number in range((hit.lastindex or 0) + 1)]

    return found


def matches_kv_of(regex: Pattern, key_group: Group, value_group: Group = 0) -> Callable[[str], Iterator[Any]]:
    """The function of `Regex.matches_kv`.

    >>> list(matches_kv_of("(a)(b+)", 1, 2)("abb"))
    [('a', 'bb')]
    """
    match = re.compile(regex).match

    def found(element: str) -> Iterator[Any]:
        if hit := match(element):
            yield hit.group(key_group), hit.group(value_group)

    return found


def find_of(regex: Pattern, group: Group = 0) -> Callable[[str], Iterator[Any]]:
    """The function of `Regex.find`.

    >>> list(find_of("b+")("abbcb"))
    ['bb']
    """
    search = re.compile(regex).search

    def found(element: str) -> Iterator[Any]:
        if hit := search(element):
            yield hit.group(group)

    return found


def find_all_of(
    regex: Pattern, group: Group = 0, output_empty: bool = True
) -> Callable[[str], Iterator[list[Any]]]:
    """The function of `Regex.find_all`.

    >>> list(find_all_of("(b*)c", 1)("bbc c")), list(find_all_of("(b*)c", _ALL, False)("bbc c"))
    ([['bb', '']], [[('bbc', 'bb')]])
    """
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


def find_kv_of(regex: Pattern, key_group: Group, value_group: Group = 0) -> Callable[[str], Iterator[Any]]:
    """The function of `Regex.find_kv`.

    >>> list(find_kv_of("(a)(b+)", 1, 2)("abb ab"))
    [('a', 'bb'), ('a', 'b')]
    """
    finditer = re.compile(regex).finditer

    def found(element: str) -> Iterator[Any]:
        return ((hit.group(key_group), hit.group(value_group)) for hit in finditer(element))

    return found


def replaced_by(regex: Pattern, replacement: Any, count: int = 0) -> Callable[[str], str]:
    """The function of `Regex.replace_all`, and, with a count of 1, of `Regex.replace_first`.

    >>> replaced_by("b", "x")("abb"), replaced_by("b", "x", 1)("abb")
    ('axx', 'axb')
    """
    substitute = re.compile(regex).sub

    def replaced(element: str) -> str:
        return substitute(replacement, element, count=count)

    return replaced


def split_of(regex: Pattern, output_empty: bool = False) -> Callable[[str], list[Any]]:
    """The function of `Regex.split`.

    >>> split_of(",")("a,,b"), split_of(",", True)("a,,b")
    (['a', 'b'], ['a', '', 'b'])
    """
    split = re.compile(regex).split

    def parts(element: str) -> list[Any]:
        return [part for part in split(element) if part or output_empty]

    return parts


class Regex:
    r"""Regular expressions over elements that are text (Beam's ``Regex``).

    Each takes the pattern as text or compiled. A group is a number or a name; 0 is the whole match.

    Example: ``lines | Regex.find(r"\d+")`` gives the first number of each line that has one.

    >>> Regex.split(",").label
    'split(,)'
    """

    ALL = _ALL

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def matches(pcoll: Any, regex: Pattern, group: Group = 0) -> Any:
        """The group, for each element that the pattern matches at its start."""
        return pcoll | FlatMap(matches_of(regex, group)).with_output_types(str)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def all_matches(pcoll: Any, regex: Pattern) -> Any:
        """The list of the match and its groups, for each element that the pattern matches at its start."""
        return pcoll | FlatMap(all_matches_of(regex)).with_output_types(List[str])

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def matches_kv(pcoll: Any, regex: Pattern, keyGroup: Group, valueGroup: Group = 0) -> Any:
        """A KV of two groups, for each element that the pattern matches at its start."""
        return pcoll | FlatMap(matches_kv_of(regex, keyGroup, valueGroup)).with_output_types(Tuple[str, str])

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def find(pcoll: Any, regex: Pattern, group: Group = 0) -> Any:
        """The group of the first match, for each element that has one anywhere."""
        return pcoll | FlatMap(find_of(regex, group)).with_output_types(str)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def find_all(pcoll: Any, regex: Pattern, group: Group = 0, outputEmpty: bool = True) -> Any:
        """For each element, the list of the groups of all its matches.

        Args:
            regex: The pattern.
            group: The group; with `Regex.ALL`, the list is of pairs of the whole match and its first group.
            outputEmpty: Whether groups that are empty are in the list.
        """
        output_type = List[Tuple[str, str]] if group == _ALL else List[str]
        return pcoll | FlatMap(find_all_of(regex, group, outputEmpty)).with_output_types(output_type)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def find_kv(pcoll: Any, regex: Pattern, keyGroup: Group, valueGroup: Group = 0) -> Any:
        """A KV of two groups for each match anywhere in an element."""
        return pcoll | FlatMap(find_kv_of(regex, keyGroup, valueGroup)).with_output_types(Tuple[str, str])

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def replace_all(pcoll: Any, regex: Pattern, replacement: Any) -> Any:
        """Each element with every match replaced."""
        return pcoll | Map(replaced_by(regex, replacement)).with_output_types(str)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def replace_first(pcoll: Any, regex: Pattern, replacement: Any) -> Any:
        """Each element with its first match replaced."""
        return pcoll | Map(replaced_by(regex, replacement, 1)).with_output_types(str)

    @staticmethod
    @ptransform_fn
    @with_input_types(str)
    def split(pcoll: Any, regex: Pattern, outputEmpty: bool = False) -> Any:
        """Each element cut at the matches, as a list; empty parts are in it only if asked for."""
        return pcoll | Map(split_of(regex, bool(outputEmpty))).with_output_types(List[str])
