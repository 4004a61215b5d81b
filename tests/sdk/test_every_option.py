"""No option is accepted and does nothing: it is read by something, or refused, or a run says it has no effect."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import penstock as beam
from penstock.options import checks
from penstock.options.checks import check_given
from penstock.options.option import Ignored, Option, Refused
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_stream import TestStream
from tests.sdk import page_of_options

ROOT = Path(__file__).parents[2]


OPTIONS = [option for _, options in page_of_options.views() for option in options]
REFUSED = [option for option in OPTIONS if isinstance(option.effect, Refused)]


def ignored(is_in_batch_only: bool) -> Iterator[Option]:
    """The options without effect, except for switches that set their default."""
    for option in OPTIONS:
        effect, says_something = option.effect, option.type is not bool or option.sets != option.default
        if isinstance(effect, Ignored) and effect.is_in_batch_only is is_in_batch_only and says_something:
            yield option


@cache
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
    read = names_that_are_read()
    assert len(OPTIONS) > 40
    with_effect = {option.name for option in OPTIONS if option.effect is None and option.check is None}
    assert with_effect - read == {"save_main_session"}, "nothing reads these options"


def test_what_is_refused_or_has_no_effect_in_a_batch_is_an_option_that_nothing_reads() -> None:
    read = names_that_are_read()
    assert [option.name for option in (*REFUSED, *ignored(True)) if option.name in read] == []


def test_every_option_with_an_effect_says_what_it_means() -> None:
    assert [option.name for option in OPTIONS if option.effect is None and not option.help] == []


def test_the_page_lists_all_options() -> None:
    assert page_of_options.PAGE.read_text("utf-8") == page_of_options.page(), (
        "run python tests/sdk/page_of_options.py"
    )


@pytest.mark.parametrize("option", REFUSED, ids=lambda option: option.name)
def test_a_refused_option_stops_a_pipeline_before_it_starts(option: Option) -> None:
    value = True if option.default is False else ["a.py"]
    pipeline = beam.Pipeline(options=PipelineOptions([], **{option.name: value}))
    with pytest.raises(ValueError, match=f"the option {option.name} is refused"):
        pipeline.explain()


@pytest.mark.parametrize("option", [*ignored(False)], ids=lambda option: option.spellings()[-1])
def test_a_given_option_that_has_no_effect_is_named_once(
    option: Option, caplog: pytest.LogCaptureFixture
) -> None:
    checks._warn_of_no_effect.cache_clear()
    value = option.sets if option.type is bool else "other"
    with caplog.at_level(logging.WARNING):
        check_given(PipelineOptions([], **{option.name: value}))
    [record] = caplog.records
    assert option.spellings()[-1] in record.getMessage()


@pytest.mark.parametrize("option", [*ignored(True)], ids=lambda option: option.name)
def test_a_pipeline_with_an_option_without_effect_says_so(
    option: Option, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = beam.Pipeline(options=PipelineOptions([], **{option.name: not option.default}))
    with caplog.at_level(logging.WARNING):
        pipeline.explain()
    assert f"the option {option.name} has no effect" in caplog.text


def test_an_option_that_asks_for_what_is_done_anyway_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    checks._warn_of_no_effect.cache_clear()
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
