"""What a program registers reaches the workers, which run none of the program."""

from __future__ import annotations

import pickle
import re
import threading
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.coders import Coder
from penstock.coders.deterministic import forget_encoders
from penstock.coders.registered_pickles import forget_coders
from penstock.coders.typecoders import registry
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.typehints.schema_registry import SCHEMA_REGISTRY
from penstock_spark.shipping import registrations

SPEEDS = ["batch", "streaming"]


class Angle:
    def __init__(self, degrees: int) -> None:
        self.degrees = degrees


class AngleCoder(Coder):
    def encode(self, value: Any) -> bytes:
        return b"%d" % (value.degrees % 360)

    def decode(self, encoded: bytes) -> Any:
        return Angle(int(encoded))

    def is_deterministic(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone after it, in this process."""
    monkeypatch.setattr(registry, "custom_types", list(registry.custom_types))
    monkeypatch.setattr(registry, "custom_fallbacks", list(registry.custom_fallbacks))
    monkeypatch.setattr(registry, "_coders", dict(registry._coders))
    monkeypatch.setattr(registry, "_fallback_coder", registry._fallback_coder)
    monkeypatch.setattr(SCHEMA_REGISTRY, "by_id", dict(SCHEMA_REGISTRY.by_id))
    yield
    forget_encoders()
    forget_coders()


@pytest.mark.parametrize("mode", SPEEDS)
@pytest.mark.parametrize("make", [lambda angle: angle, lambda angle: ("north", angle)])
def test_a_coder_that_the_program_registered_decides_in_workers_what_is_one_key(mode: str, make: Any) -> None:
    # A class of its own, so that no worker has met it.
    kind = type("Angle", (Angle,), {"__module__": __name__})
    coder = type("OwnCoder", (AngleCoder,), {"decode": lambda self, encoded: kind(int(encoded))})
    registry.register_coder(kind, coder)

    def degrees(pair: Any) -> Any:
        key, total = pair
        return (key[1] if isinstance(key, tuple) else key).degrees, total

    with TestPipeline(mode=mode) as pipeline:
        turned = pipeline | beam.Create([450, 90, 45]) | beam.Map(lambda number: (make(kind(number)), 1))
        # As in Beam, a key comes out of the grouping as the coder decodes it.
        assert_that(turned | beam.CombinePerKey(sum) | beam.Map(degrees), equal_to([(90, 2), (45, 1)]))
        grouped = turned | beam.GroupByKey() | beam.MapTuple(lambda key, ones: (key, len(list(ones))))
        assert_that(grouped | "Degrees" >> beam.Map(degrees), equal_to([(90, 2), (45, 1)]), label="grouped")


@pytest.mark.parametrize("mode", SPEEDS)
def test_fallback_coders_and_classes_of_schemas_reach_the_workers(mode: str) -> None:
    class Fallback(Coder):
        @classmethod
        def from_type_hint(cls, typehint: Any, registry: Any) -> Any:
            if typehint is complex:
                return cls()
            raise ValueError("this coder is for complex numbers only")

    class Point(NamedTuple):
        x: int

    schema_id = f"point {uuid.uuid4()}"
    registry.register_fallback_coder(Fallback)
    SCHEMA_REGISTRY.load_registered_typings({schema_id: Point})

    def known(_: int) -> tuple[str, str]:
        found = SCHEMA_REGISTRY.get_typing_by_id(schema_id)
        return type(registry.get_coder(complex)).__name__, getattr(found, "__name__", "none")

    with TestPipeline(mode=mode) as pipeline:
        assert_that(pipeline | beam.Create([1]) | beam.Map(known), equal_to([("Fallback", "Point")]))


@pytest.mark.parametrize("mode", SPEEDS)
def test_elements_that_cannot_be_pickled_get_from_step_to_step_with_their_registered_coder(mode: str) -> None:
    class Locked:
        def __init__(self, number: int) -> None:
            self.number, self.lock = number, threading.Lock()

    class LockedCoder(Coder):
        def encode(self, value: Any) -> bytes:
            return str(value.number).encode()

        def decode(self, encoded: bytes) -> Any:
            return Locked(int(encoded))

        def is_deterministic(self) -> bool:
            return True

    registry.register_coder(Locked, LockedCoder)

    def numbers(joined: Any) -> tuple[int, list[int]]:
        key, sides = joined
        return key.number, sorted(each.number for side in sides for each in side)

    with TestPipeline(mode=mode) as pipeline:
        # Inside of a pair, of a list, as a key, and as the accumulator of a combiner.
        pairs = pipeline | beam.Create([(Locked(number % 2), Locked(number)) for number in range(4)])
        joined = (pairs | beam.Reshuffle(), pairs) | beam.CoGroupByKey()
        assert_that(joined | beam.Map(numbers), equal_to([(0, [0, 0, 2, 2]), (1, [1, 1, 3, 3])]))
        best = pairs | beam.CombinePerKey(lambda values: max(values, key=lambda each: each.number))
        shown = best | "Shown" >> beam.MapTuple(lambda key, value: (key.number, value.number))
        assert_that(shown, equal_to([(0, 2), (1, 3)]), label="combined")


def test_a_coder_that_cannot_be_pickled_is_refused_by_name_before_anything_runs() -> None:
    class Locked(AngleCoder):
        lock = threading.Lock()

    registry.register_coder(Angle, Locked)
    pipeline = TestPipeline()
    _ = pipeline | beam.Create([1]) | beam.Map(str)
    refusal = r"(?s)Locked of Angle.*\n  in the registry .*\n  hint: open files"
    with pytest.raises(RuntimeError, match=refusal):
        pipeline.run()


@pytest.mark.parametrize(
    ("pickled", "why"),
    [
        pytest.param(b"cno_such_module\nCoder\n.", "No module named 'no_such_module'", id="no module"),
        # A class that a function of the driver has put into its module.
        pytest.param(
            b"cjson\nCoder\n.", "(Can't get|module 'json' has no) attribute 'Coder'", id="no such name"
        ),
    ],
)
def test_a_worker_goes_on_without_what_it_cannot_load(
    pickled: bytes, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(registrations, "_known", set())
    value = registrations.WithRegistrations((("the coder C of K", pickled),), "value")
    assert pickle.loads(pickle.dumps(value)) == "value"
    assert re.search(f"this worker cannot load the coder C of K: {why}", caplog.text)


def test_a_value_brings_no_registrations_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "custom_types", [])
    monkeypatch.setattr(registry, "custom_fallbacks", [])
    monkeypatch.setattr(SCHEMA_REGISTRY, "by_id", {})
    assert registrations.pickle_registrations(pickle.dumps) == ()
