"""A misspelled keyword argument of a transform has a hint, next to Python's own words."""

from __future__ import annotations

import pytest

import penstock as beam


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: beam.io.ReadFromParquet("in", as_row=True), "as_rows"),
        (lambda: beam.io.WriteToText("out", file_name_sufix=".txt"), "file_name_suffix"),
        (lambda: beam.WindowInto(beam.window.FixedWindows(60), acumulation_mode=1), "accumulation_mode"),
        (lambda: beam.combiners.Top.Of(3, keey=len), "key"),
        (lambda: beam.Map(len).with_exception_handling(maintag="good"), "main_tag"),
        (lambda: beam.ParDo(len).with_outputs("bad", mian="good"), "main"),
        (lambda: beam.GroupIntoBatches(batchsize=3), "batch_size"),
    ],
    ids=["a source", "a sink", "windows", "a combiner", "a method", "tags", "a base class"],
)
def test_a_misspelled_keyword_has_a_hint(make, meant) -> None:
    with (
        pytest.raises(TypeError, match="got an unexpected keyword argument") as caught,
        beam.Pipeline() as pipeline,
    ):
        pipeline | beam.Create(["a"]) | make()
    assert caught.value.__notes__ == [f"  hint: did you mean {meant}?"]


def _own(*, limit: int = 1) -> int:
    return limit


@pytest.mark.parametrize(
    "call",
    [
        lambda: _own(limits=2),
        lambda: beam.Create([1], everything=3),
        lambda: len(3),
        lambda: int("x"),
    ],
    ids=["a function of the program", "nothing like it", "another TypeError", "another error"],
)
def test_other_errors_have_no_hint(call) -> None:
    with pytest.raises((TypeError, ValueError)) as caught, beam.Pipeline():
        call()
    assert not hasattr(caught.value, "__notes__")
