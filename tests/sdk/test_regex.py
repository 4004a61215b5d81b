"""The functions behind `Regex` have Beam's results."""

import re
import warnings

import pytest

from penstock.transforms import regex
from penstock.transforms.util import Regex

LINES = ["abb c12 abbb", "xx", "", "c7,c8,,c9", "a", "abc" * 3]


def beams_results(name, arguments):
    """What Beam's transform gives for each line, from the function that it hands to FlatMap or Map."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pytest.importorskip("apache_beam.transforms.util")
        from apache_beam.transforms.ptransform import PTransform

    class Catching:
        pipeline = None
        element_type = str

        def __or__(self, transform: PTransform):
            fn = getattr(transform, "transform", transform).fn
            return lambda line: list(fn.process(line) or [])

    return getattr(theirs.Regex, name)(*arguments).expand(Catching())


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [
        ("matches", regex.matches_of, ("a(b+)",)),
        ("matches", regex.matches_of, ("a(?P<bs>b+)", "bs")),
        ("matches", regex.matches_of, (re.compile("A(b+)", re.IGNORECASE), 1)),
        ("all_matches", regex.all_matches_of, ("(a)(b*)",)),
        ("matches_kv", regex.matches_kv_of, ("(a)(b+)", 1)),
        ("matches_kv", regex.matches_kv_of, ("(?P<a>a)(?P<b>b+)", "a", "b")),
        ("find", regex.find_of, (r"c(\d+)", 1)),
        ("find_all", regex.find_all_of, (r"c(\d*)",)),
        ("find_all", regex.find_all_of, (r"c(\d*)", 1, False)),
        ("find_all", regex.find_all_of, (r"c(\d*)", Regex.ALL)),
        ("find_all", regex.find_all_of, (r"c(\d*)", Regex.ALL, False)),
        ("find_kv", regex.find_kv_of, (r"(c)(\d+)", 1, 2)),
        ("find_kv", regex.find_kv_of, (r"(c)(\d+)", 1)),
        ("replace_all", regex.replaced_by, ("b+", "<\\g<0>>")),
        ("replace_first", lambda pattern, new: regex.replaced_by(pattern, new, 1), ("b+", "x")),
        ("split", regex.split_of, (",",)),
        ("split", regex.split_of, (",", True)),
        ("split", regex.split_of, ("(,)", True)),
    ],
)
def test_each_function_gives_what_beams_transform_gives(name, function, arguments):
    theirs = beams_results(name, arguments)
    mine = function(*arguments)
    one_to_one = name in {"replace_all", "replace_first", "split"}
    assert [[mine(line)] if one_to_one else list(mine(line)) for line in LINES] == [
        theirs(line) for line in LINES
    ]


def test_a_pattern_without_groups_is_its_own_only_match_but_has_no_groups_to_pair():
    assert list(regex.all_matches_of("ab")("abc")) == [["ab"]]
    with pytest.raises(ValueError, match="a pattern without groups"):
        regex.find_all_of("ab", Regex.ALL)
