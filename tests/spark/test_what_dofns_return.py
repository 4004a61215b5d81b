"""What a DoFn or function may return, and what it is told if it returns something else."""

import pytest

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.userstate import CombiningValueStateSpec


def test_a_function_that_gives_none_gives_nothing_and_one_that_gives_no_iterable_is_refused():
    with TestPipeline() as p:
        numbers = p | beam.Create([1, 2, 3], reshuffle=False)
        some = numbers | "Some" >> beam.FlatMap(lambda x: [x] if x == 2 else None)
        assert_that(some, equal_to([2]), label="some")
        none = numbers | "None" >> beam.FlatMap(lambda x: None)
        assert_that(none, equal_to([]), label="none")
        nones = numbers | "Nones" >> beam.Map(lambda x: None)
        assert_that(nones, equal_to([None, None, None]), label="nones")
        parts = p | "Nested" >> beam.Create([[1, 2], [], (3,), {4}]) | "Flat" >> beam.FlatMap()
        assert_that(parts, equal_to([1, 2, 3, 4]), label="flat")
    no_iterable = r"(?s)<class 'int'> was returned instead: .*at step 'Late' .*hint: yield the element"
    for result, text in (("ab", "Returning a str"), ({1: 2}, "Returning a dict"), (7, no_iterable)):
        # The first element gives a list, so that a look at the first result alone would not notice.
        p = TestPipeline()
        late = p | beam.Create([1, 2]) | beam.Map(lambda x: list(range(x))) | "All" >> beam.FlatMap()
        _ = late | "Late" >> beam.FlatMap(lambda x: result if x else [0])
        with pytest.raises(TypeError, match=text):
            p.run()


class EndsWithANumber(beam.DoFn):
    def process(self, element):
        return iter([element])

    def finish_bundle(self):
        return 7


class CountsInState(beam.DoFn):
    def process(self, element, seen=beam.DoFn.StateParam(CombiningValueStateSpec("seen", sum))):
        return 7


@pytest.mark.parametrize("dofn", [EndsWithANumber(), CountsInState()])
def test_a_dofn_that_returns_a_number_is_refused_with_the_step_and_what_to_return(dofn):
    p = TestPipeline()
    _ = p | beam.Create([(1, 2)]) | "Numbers" >> beam.ParDo(dofn)
    refusal = r"(?s)must return an iterable.*at step 'Numbers' .*hint: yield the element, return \[element\]"
    with pytest.raises(TypeError, match=refusal):
        p.run()
