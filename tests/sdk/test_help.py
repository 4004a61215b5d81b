"""The help of the transforms that every program uses shows an example."""

from __future__ import annotations

import pydoc

import pytest

import penstock as beam

_NAMES = (
    *("Map", "FlatMap", "Filter", "MapTuple", "FlatMapTuple", "ParDo", "Create", "Flatten", "Select"),
    *("GroupByKey", "GroupBy", "CoGroupByKey", "CombinePerKey", "CombineGlobally", "CombineValues"),
    *("Keys", "Values", "KvSwap", "WithKeys", "Distinct"),
)


@pytest.mark.parametrize("name", _NAMES)
def test_help_shows_an_example(name) -> None:
    own = pydoc.plain(pydoc.render_doc(getattr(beam, name))).partition("Method resolution order")[0]
    assert "Example: ``" in own
    assert f"{name}(" in own.partition("Example: ")[2]
