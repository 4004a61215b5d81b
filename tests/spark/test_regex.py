"""The Regex transforms on Spark."""

import re

import pytest

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.util import Regex

pytestmark = pytest.mark.spark


def test_every_regex_transform():
    with TestPipeline() as p:
        lines = p | beam.Create(["abb c12", "xx", "c7,,c8"])
        cases = {
            "matches": (Regex.matches("a(b+)"), ["abb"]),
            "matches group": (Regex.matches(re.compile("(?P<c>C)", re.IGNORECASE), "c"), ["c"]),
            "all_matches": (Regex.all_matches("(a)(b+)"), [["abb", "a", "bb"]]),
            "matches_kv": (Regex.matches_kv("(a)(b+)", 1, 2), [("a", "bb")]),
            "matches_kv whole": (Regex.matches_kv("(a)(b+)", 1), [("a", "abb")]),
            "find": (Regex.find(r"c(\d+)", 1), ["12", "7"]),
            "find_all": (Regex.find_all(r"c\d"), [["c1"], [], ["c7", "c8"]]),
            "find_all groups": (
                Regex.find_all(r"c(\d*)", Regex.ALL),
                [[("c12", "12")], [], [("c7", "7"), ("c8", "8")]],
            ),
            "find_kv": (Regex.find_kv(r"(c)(\d+)", 1, 2), [("c", "12"), ("c", "7"), ("c", "8")]),
            "replace_all": (Regex.replace_all("[bx]", "-"), ["a-- c12", "--", "c7,,c8"]),
            "replace_first": (Regex.replace_first("[bx]", "-"), ["a-b c12", "-x", "c7,,c8"]),
            "split": (Regex.split(","), [["abb c12"], ["xx"], ["c7", "c8"]]),
            "split empty": (Regex.split(",", True), [["abb c12"], ["xx"], ["c7", "", "c8"]]),
        }
        for label, (transform, expected) in cases.items():
            assert_that(lines | label >> transform, equal_to(expected), label=f"check {label}")
