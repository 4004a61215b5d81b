"""Checkpoints that another Spark has written, or a program that has registered other coders for its keys."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.coders import Coder
from penstock.coders.typecoders import CoderRegistry
from penstock_spark.checkpoints.contract.compare import compare
from tests.runner.checkpoint_plans import BASE, Pipeline


@pytest.mark.parametrize(
    ("wrote", "runs", "refusal", "note"),
    [
        ("4.3.0", "4.3.2", None, None),
        ("4.3.2", "4.3.0", None, None),
        ("4.1.4", "4.3.0", None, "an older Spark wrote it"),
        (
            "4.3.0",
            "4.2.1",
            "a newer Spark wrote it: use that version, or a later one\n  - 4.3.0\n  + 4.2.1",
            None,
        ),
        (
            "4.0.5",
            "4.1.4",
            "Spark 4.0 wrote it, and later versions cannot read its state: use Spark 4.0\n  - 4.0.5\n  + 4.1.4",
            None,
        ),
        ("4.0.1", "4.0.5", None, None),
        (None, "4.1.4", None, None),
    ],
)
def test_a_newer_spark_goes_on_with_a_checkpoint_and_an_older_one_is_refused(
    wrote: str | None, runs: str, refusal: str | None, note: str | None
) -> None:
    old = BASE.signature() | ({"spark": wrote} if wrote else {})
    told = compare(old, BASE.signature() | {"spark": runs})
    assert told.refusals == ([] if refusal is None else [refusal])
    if refusal is None:
        assert [each.partition(",")[0] for each in told.notes] == ([] if note is None else [note])


class Angle:
    def __init__(self, degrees: int) -> None:
        self.degrees = degrees


class Place(NamedTuple):
    name: str


class AngleCoder(Coder):
    def is_deterministic(self) -> bool:
        return True


class OtherAngleCoder(AngleCoder):
    pass


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> CoderRegistry:
    fresh = CoderRegistry()
    for module in ("penstock.coders.typecoders", "penstock_spark.checkpoints.contract.key_coders"):
        monkeypatch.setattr(importlib.import_module(module), "registry", fresh)
    return fresh


def keyed_by(kind: Any) -> Pipeline:
    pairs = beam.typehints.Tuple[kind, int]
    return Pipeline(step=lambda one: one, top=False, more=lambda clicks, sums: _by(clicks, pairs))


def _by(clicks: Any, pairs: Any) -> None:
    _ = (
        clicks
        | "By" >> beam.Map(lambda click: click).with_output_types(pairs)
        | "Own" >> beam.GroupByKey()
        | "ShowOwn" >> beam.Map(print)
    )


@pytest.mark.parametrize("kind", [Angle, tuple[str, Angle], Any])
def test_state_is_refused_where_keys_are_told_apart_by_another_coder(
    registry: CoderRegistry, kind: Any
) -> None:
    registry.register_coder(Angle, AngleCoder)
    old = keyed_by(kind).signature()
    assert not compare(old, keyed_by(kind).signature()).refusals
    registry.register_coder(Angle, OtherAngleCoder)
    refusals = compare(old, keyed_by(kind).signature()).refusals
    (own,) = [refusal for refusal in refusals if "'Own'" in refusal]
    assert "the keys of 'Own' have a different coder for" in own
    assert own.splitlines()[1].endswith("AngleCoder")
    assert own.splitlines()[2].endswith("OtherAngleCoder")


def test_a_coder_of_a_type_that_keys_are_not_of_is_no_difference(registry: CoderRegistry) -> None:
    old = keyed_by(str).signature()
    registry.register_coder(Place, AngleCoder)
    assert not [each for each in compare(old, keyed_by(str).signature()).refusals if "'Own'" in each]


def test_a_new_coder_fits_only_where_the_type_could_be_no_key_without(registry: CoderRegistry) -> None:
    old = keyed_by(Any).signature()
    registry.register_coder(Angle, AngleCoder)
    assert not compare(old, keyed_by(Any).signature()).refusals
    registry.register_coder(Place, AngleCoder)
    assert [each for each in compare(old, keyed_by(Any).signature()).refusals if "Place" in each]
