"""No option is accepted and does nothing: it is read by something, or refused, or a run says it has no effect."""

from __future__ import annotations

import argparse
import ast
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.construction.without_effect import NO_EFFECT_IN_BATCH, REFUSED
from penstock.options import given
from penstock.options.base import OptionsParser, all_classes, parser_of
from penstock.options.given import check_given
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_stream import TestStream

ROOT = Path(__file__).parents[2]


def is_ours(options: type[PipelineOptions]) -> bool:
    return options.__module__.startswith("penstock.")


def every_option() -> dict[str, Any]:
    """The default of each option of ours, by name."""
    found = {}
    for options in PipelineOptions.__subclasses__():
        # The classes of docstrings' examples are not in their modules.
        if is_ours(options) and vars(sys.modules[options.__module__]).get(options.__name__) is options:
            parser = OptionsParser()
            options._add_argparse_args(parser)
            found |= {action.dest: action.default for action in parser._actions if action.dest != "help"}
    return found


def without_effect() -> list[argparse.Action]:
    """The options that the parser knows to have no effect."""
    ours = [options for options in all_classes() if is_ours(options)]
    found = parser_of(ours).without_effect()
    return [action for action in found if action.const is None or action.const != action.default]


def names_that_are_read() -> set[str]:
    """The attributes that our code reads, and the constants by which it asks a mapping."""
    read = set()
    for file in (
        path for folder in ("sdk", "runner_spark", "connectors") for path in (ROOT / folder).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Load()):
                    read.add(name)
                case ast.Call(ast.Attribute(attr="get"), [ast.Constant(str(name)), *_]):
                    read.add(name)
                case ast.Subscript(slice=ast.Constant(str(name))):
                    read.add(name)
    return read


def test_every_option_is_read_or_refused_or_said_to_have_no_effect() -> None:
    options, read = every_option(), names_that_are_read()
    assert len(options) > 40
    said = {*REFUSED, *NO_EFFECT_IN_BATCH, *(action.dest for action in without_effect())}
    assert [name for name in options if name not in read and name not in said] == []


def test_what_is_refused_or_has_no_effect_is_an_option_that_nothing_reads() -> None:
    read = names_that_are_read()
    assert not REFUSED.keys() & NO_EFFECT_IN_BATCH.keys()
    assert REFUSED.keys() | NO_EFFECT_IN_BATCH.keys() <= every_option().keys()
    assert [name for name in (*REFUSED, *NO_EFFECT_IN_BATCH) if name in read] == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_option_stops_a_pipeline_before_it_starts(name: str) -> None:
    value = True if every_option()[name] is False else ["a.py"]
    pipeline = beam.Pipeline(options=PipelineOptions([], **{name: value}))
    with pytest.raises(ValueError, match=f"the option {name} is refused"):
        pipeline.explain()


@pytest.mark.parametrize("action", without_effect(), ids=lambda action: action.option_strings[-1])
def test_a_given_option_that_the_parser_knows_to_have_no_effect_is_named_once(
    action: argparse.Action, caplog: pytest.LogCaptureFixture
) -> None:
    given._warn_of_no_effect.cache_clear()
    value = not action.default if action.const is None else action.const
    with caplog.at_level(logging.WARNING):
        check_given(PipelineOptions([], **{action.dest: value}))
    [record] = caplog.records
    assert action.option_strings[-1] in record.getMessage()


@pytest.mark.parametrize("name", NO_EFFECT_IN_BATCH)
def test_a_pipeline_with_an_option_without_effect_says_so(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    default = every_option()[name]
    value = not default if isinstance(default, bool | None) else "other"
    pipeline = beam.Pipeline(options=PipelineOptions([], **{name: value}))
    with caplog.at_level(logging.WARNING):
        pipeline.explain()
    assert f"the option {name} has no effect" in caplog.text


def test_an_option_that_asks_for_what_is_done_anyway_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    given._warn_of_no_effect.cache_clear()
    options = PipelineOptions(["--streaming", "--save_main_session"])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | TestStream().add_elements([1]).advance_watermark_to_infinity()
    with caplog.at_level(logging.WARNING):
        pipeline.explain()
    assert caplog.text == ""


def test_a_pipeline_without_options_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        beam.Pipeline(options=PipelineOptions([])).explain()
    assert caplog.text == ""


def test_an_argument_that_is_no_option_is_refused_by_the_pipeline() -> None:
    with pytest.raises(TypeError, match="no_such_option"):
        beam.Pipeline(no_such_option=1)
