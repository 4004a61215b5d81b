"""The transforms of `Regex` have Beam's results."""

import re
import warnings

import pytest

from penstock.transforms.util import Regex

LINES = ["abb c12 abbb", "xx", "", "c7,c8,,c9", "a", "abc" * 3]


class Catching:
    """Stands for a PCollection; what is applied to it becomes a function from a line to a list."""

    pipeline = None
    element_type = str

    def __or__(self, transform):
        fn = getattr(transform, "transform", transform).fn
        return lambda line: list(fn.process(line) or [])


def function_of(transforms, name, arguments):
    return getattr(transforms, name)(*arguments).expand(Catching())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("matches", ("a(b+)",)),
        ("matches", ("a(?P<bs>b+)", "bs")),
        ("matches", (re.compile("A(b+)", re.IGNORECASE), 1)),
        ("all_matches", ("(a)(b*)",)),
        ("matches_kv", ("(a)(b+)", 1)),
        ("matches_kv", ("(?P<a>a)(?P<b>b+)", "a", "b")),
        ("find", (r"c(\d+)", 1)),
        ("find_all", (r"c(\d*)",)),
        ("find_all", (r"c(\d*)", 1, False)),
        ("find_all", (r"c(\d*)", Regex.ALL)),
        ("find_all", (r"c(\d*)", Regex.ALL, False)),
        ("find_kv", (r"(c)(\d+)", 1, 2)),
        ("find_kv", (r"(c)(\d+)", 1)),
        ("replace_all", ("b+", "<\\g<0>>")),
        ("replace_first", ("b+", "x")),
        ("split", (",",)),
        ("split", (",", True)),
        ("split", ("(,)", True)),
    ],
)
def test_each_transform_gives_what_beams_gives(name, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beams = pytest.importorskip("apache_beam.transforms.util")
    mine, theirs = (function_of(each, name, arguments) for each in (Regex, beams.Regex))
    assert [mine(line) for line in LINES] == [theirs(line) for line in LINES]


def test_a_pattern_without_groups_is_its_own_only_match_but_has_no_groups_to_pair():
    assert function_of(Regex, "all_matches", ("ab",))("abc") == [["ab"]]
    with pytest.raises(ValueError, match="a pattern without groups"):
        function_of(Regex, "find_all", ("ab", Regex.ALL))
