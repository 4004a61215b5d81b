"""A PCollection that user code refers to as if it were a value is refused while the pipeline is built."""

import functools
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.error import SideInputError
from penstock.pvalue import AsList
from penstock.testing.util import assert_that

WORDS = beam.Pipeline() | "Words" >> beam.Create(["a"])
IN_A_DICT = {"words": WORDS}
COUNT = 3


def is_word(word: str) -> bool:
    return word in WORDS  # type: ignore[operator]


class Attribute(beam.DoFn):
    def __init__(self, words: Any) -> None:
        super().__init__()
        self.words = words

    def process(self, element: Any) -> Any:
        yield element


class GlobalVariable(beam.DoFn):
    def process(self, element: Any) -> Any:
        yield is_word(element)


class Callable(NamedTuple):
    words: Any

    def __call__(self, element: Any) -> bool:
        return element in self.words


class CallableWithAttribute:
    def __init__(self, words: Any) -> None:
        self.words = words

    def __call__(self, element: Any) -> bool:
        return element in self.words

    def method(self, element: Any) -> bool:
        return element in self.words


class Combine(beam.CombineFn):
    def __init__(self, words: Any) -> None:
        self.words = words

    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: Any) -> int:
        return accumulator

    def merge_accumulators(self, accumulators: Any) -> int:
        return 0

    def extract_output(self, accumulator: int) -> int:
        return 0


def refused(words: Any) -> dict[str, beam.PTransform]:
    """Transforms whose user code refers to a PCollection, by how it does."""

    def wrapped(element: Any) -> Any:
        return is_word(element)

    several = [words]
    return {
        "closure": beam.Map(lambda word: word in words),
        "list in a closure": beam.Map(lambda word: word in several[0]),
        "closure of a function in a function": beam.Map(lambda word: [word in words for _ in "ab"]),
        "default argument": beam.Map(lambda word, known=words: word in known),
        "keyword default": beam.Map(lambda word, *, known=words: word in known),
        "global variable": beam.Filter(is_word),
        "dict in a global variable": beam.Filter(lambda word: word in IN_A_DICT["words"]),
        "global variable of a function it calls": beam.Filter(wrapped),
        "argument of a partial": beam.Map(functools.partial(lambda known, word: word in known, words)),
        "attribute": beam.ParDo(Attribute(words)),
        "attribute, with tagged outputs": beam.ParDo(Attribute(words)).with_outputs("other"),
        "attribute, with dead letters": beam.ParDo(Attribute(words)).with_exception_handling(),
        "view in an attribute": beam.ParDo(Attribute(AsList(words))),
        "method of a DoFn": beam.ParDo(GlobalVariable()),
        "callable object": beam.Map(CallableWithAttribute(words)),
        "bound method": beam.Map(CallableWithAttribute(words).method),
        "named tuple": beam.Map(Callable(words)),
        "CombineFn": beam.CombineGlobally(Combine(words)),
        "combining function": beam.CombineGlobally(lambda values: len(words)),
        "key of GroupBy": beam.GroupBy(lambda word: word in words),
        "partition function": beam.Partition(lambda word, count: word in words, 2),
        "argument in a list": beam.Map(lambda word, known: word in known[0], [words]),
        "batch function": beam.io.ForEachBatch(lambda elements, batch: print(words)),
    }


@pytest.mark.parametrize("how", refused(WORDS))
def test_user_code_that_refers_to_a_pcollection_is_refused_with_the_step_and_what_to_do(how: str) -> None:
    pipeline = beam.Pipeline()
    words = pipeline | "Words" >> beam.Create(["a"])
    with pytest.raises(SideInputError) as caught:
        _ = pipeline | beam.Create(["a"]) | "The step" >> refused(words)[how]
    message = str(caught.value)
    assert "at step 'The step" in message
    assert "test_captured.py" in message
    assert "use a side input" in message


def test_a_step_that_was_refused_can_be_written_again_with_a_side_input() -> None:
    pipeline = beam.Pipeline()
    words = pipeline | "Words" >> beam.Create(["a"])
    elements = pipeline | beam.Create(["a"])
    with pytest.raises(SideInputError):
        _ = elements | "Step" >> beam.Filter(lambda word: word in words)
    _ = elements | "Step" >> beam.Filter(lambda word, known: word in known, AsList(words))


class Composite(beam.PTransform):
    """Holds a PCollection, as transforms may, and uses a method of its own as a function."""

    def __init__(self, other: Any) -> None:
        super().__init__()
        self.other = other
        self.limit = 3

    def below(self, element: str) -> bool:
        return len(element) < self.limit

    def expand(self, pcoll: Any) -> Any:
        short = pcoll | beam.Filter(self.below)
        near = pcoll | "Near" >> beam.Filter(lambda element: len(element) == self.limit)
        return (short, near, self.other) | beam.Flatten()


def test_what_only_looks_like_a_reference_is_not_refused() -> None:
    pipeline = beam.Pipeline()
    words = pipeline | "Words" >> beam.Create(["a"])
    elements = pipeline | beam.Create([beam.Row(WORDS=1)])
    _ = elements | "Attribute of the same name" >> beam.Map(lambda row: row.WORDS + COUNT)
    _ = words | Composite(words)
    _ = words | "Method" >> beam.ParDo(Attribute(None))
    assert_that(words, lambda actual: None)
