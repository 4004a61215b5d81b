"""Every public transform, window and trigger has an example; tests/test_docs.py runs the folder of examples."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.construction.ptransform import PTransform
from penstock.transforms.trigger import TriggerFn
from penstock.transforms.window import WindowFn

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(autouse=True)
def scripts_of_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the scripts beside the pages importable."""
    monkeypatch.syspath_prepend(DOCS)


def public_objects() -> dict[str, Any]:
    """What the tables of the reference list, by its last name."""
    text = (DOCS / "reference/index.md").read_text(encoding="utf-8")
    found = {}
    for name in re.findall(r"^   ~(penstock[\w.]*)$", text, re.MULTILINE):
        module, _, last = name.rpartition(".")
        found[last] = getattr(importlib.import_module(module), last)
    return found


def needs_an_example(public: Any) -> bool:
    """True for a window, a trigger, a transform, what returns one (`Keys`), and what holds several (`Count`)."""
    if not inspect.isclass(public):
        return inspect.isfunction(public) and public.__name__[0].isupper()
    return issubclass(public, PTransform | TriggerFn | WindowFn) or any(
        needs_an_example(each) for each in vars(public).values()
    )


def test_every_public_transform_has_an_example() -> None:
    from reference_examples import examples_by_name

    transforms = {name: each for name, each in public_objects().items() if needs_an_example(each)}
    assert len(transforms) > 80
    assert {"Keys", "Map", "Count", "ReadFromCsv", "ReadFromKafka", "Upserts"} <= set(transforms)
    written = examples_by_name()
    lacking = [
        name for name, each in transforms.items() if name not in written and ">>> " not in str(each.__doc__)
    ]
    assert lacking == []


def test_an_example_names_what_it_shows_and_stands_alone() -> None:
    from reference_examples import examples_by_name, names_missing_in

    public = public_objects()
    found = examples_by_name()
    assert len(found) > 80
    for name, example in found.items():
        assert name in public, "the tables of the reference do not have it"
        lines = [line[4:] for line in example.splitlines() if line.startswith((">>> ", "... ", "..."))]
        assert name in example or name.lower() in example.lower(), name
        assert names_missing_in("\n".join(lines)) == set(), name


def test_a_missing_name_is_found() -> None:
    from reference_examples import names_missing_in

    assert names_missing_in("a = [each for each in b]\ndef f(c, *d): return c, d, e\n") == {"b", "e"}
