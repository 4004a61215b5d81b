"""Display data: facts about a pipeline's parts."""

from datetime import datetime, timedelta

import pytest

import penstock as beam
from penstock.functions.dofn import FilterDoFn, MapDoFn
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.combiners import MeanCombineFn, TopCombineFn
from penstock.transforms.display import DisplayData, DisplayDataItem, HasDisplayData


class Inner(HasDisplayData):
    def display_data(self):
        return {"inner": 1}


class Outer(HasDisplayData):
    def display_data(self):
        return {
            "text": "a",
            "kept": DisplayDataItem(2, label="Kept").drop_if_default(1),
            "default": DisplayDataItem(1).drop_if_default(1),
            "none": DisplayDataItem(None).drop_if_none(),
            "part": Inner(),
        }


def test_facts_come_with_those_of_parts_and_without_those_to_drop():
    items = DisplayData.create_from(Outer(), extra_items={"more": True}).items
    module = Outer.__module__
    assert [(item.key, item.namespace) for item in items] == [
        ("text", f"{module}.Outer"),
        ("kept", f"{module}.Outer"),
        ("inner", f"{module}.Inner"),
        ("more", f"{module}.Outer"),
    ]
    assert items[1].get_dict() == {
        "key": "kept",
        "namespace": f"{module}.Outer",
        "type": "INTEGER",
        "label": "Kept",
        "value": 2,
    }


@pytest.mark.parametrize(
    ("value", "type_name", "shown"),
    [
        ("a", "STRING", "a"),
        (1, "INTEGER", 1),
        (1.5, "FLOAT", 1.5),
        (True, "BOOLEAN", True),
        (timedelta(seconds=2), "DURATION", 2000),
        (datetime(1970, 1, 1, 0, 0, 1, 500_000), "TIMESTAMP", 1500),
        (Inner, "STRING", f"{Inner.__module__}.Inner"),
    ],
)
def test_values_are_shown_by_type(value, type_name, shown):
    fact = DisplayDataItem(value, namespace="n", key="k").get_dict()
    assert (fact["type"], fact["value"]) == (type_name, shown)
    assert fact.get("shortValue") == ("Inner" if value is Inner else None)


@pytest.mark.parametrize(
    ("item", "complaint"),
    [
        (DisplayDataItem(1, namespace="n"), "key must not be None"),
        (DisplayDataItem(1, key="k"), "namespace must not be None"),
        (DisplayDataItem(None, key="k", namespace="n"), "value must not be None"),
        (DisplayDataItem([], key="k", namespace="n"), "unsupported type"),
    ],
)
def test_an_incomplete_fact_is_refused(item, complaint):
    with pytest.raises(ValueError, match=complaint):
        item.is_valid()


def test_facts_compare_by_content():
    assert DisplayDataItem(1, key="k") == DisplayDataItem(1, key="k") != DisplayDataItem(2, key="k")
    assert len({DisplayDataItem(1, key="k"), DisplayDataItem(1, key="k")}) == 1


@pytest.mark.usefixtures("only_lasting_options")
def test_options_are_shown_with_odd_values_as_text():
    data = DisplayData.create_from_options(PipelineOptions(["--streaming"], resource_hints=["a=b"]))
    assert {item.key: item.value for item in data.items} == {"streaming": True, "resource_hints": "['a=b']"}


@pytest.mark.parametrize("make", [DisplayData.create_from, DisplayData.create_from_options])
def test_things_without_facts_are_refused(make):
    with pytest.raises(ValueError, match=r"Element of class builtins.int does not subclass"):
        make(3)
    with pytest.raises(TypeError, match="text"):
        DisplayData.create_from(Outer(), {"text": 1})


FUNCTION = "penstock.transforms.core.CallableWrapperDoFn"


@pytest.mark.parametrize(
    ("transform", "facts"),
    [
        (beam.Map(len), [("fn", MapDoFn, None), ("fn", "len", FUNCTION)]),
        (beam.Filter(lambda x: x), [("fn", FilterDoFn, None), ("fn", "<lambda>", FUNCTION)]),
        (beam.CombineGlobally(MeanCombineFn()), [("combine_fn", MeanCombineFn, None)]),
        (beam.CombineGlobally(sum), [("combine_fn", "sum", None)]),
        (
            beam.CombinePerKey(TopCombineFn(5)),
            [("combine_fn", TopCombineFn, None), ("n", 5, None), ("compare", "lt", None)],
        ),
    ],
)
def test_a_transform_tells_the_class_of_its_function_and_what_that_tells(transform, facts):
    items = DisplayData.create_from(transform).items
    assert [(item.key, item.value) for item in items] == [fact[:2] for fact in facts]
    assert all(
        namespace in (None, item.namespace) for item, (_, _, namespace) in zip(items, facts, strict=True)
    )
