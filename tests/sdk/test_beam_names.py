"""Every public name of Beam is in penstock, with Beam's parameters and defaults, or in the table that says why not."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from enum import EnumType
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.left_out import INSTEAD, INSTEAD_OF_NAMES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "beam_names.md").read_text(encoding="utf-8")
BEAM: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "data" / "beam_names.json").read_text(encoding="utf-8")
)
"""The public names of Apache Beam 2.77.0 by module, and the public attributes that a class adds to its bases."""


def first_cells(text: str) -> list[str]:
    """The code words in the first column of the tables of a text."""
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]


LEFT_OUT = {
    name: first_cells(part)
    for name, part in re.findall(r"^### (apache_beam\S*)\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
LEFT_OUT_MODULES = first_cells(TEXT.partition("## Whole modules")[2].partition("\n## ")[0])


def ours(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module.replace("apache_beam", "penstock", 1))
    except ModuleNotFoundError:
        return None


def find(module: ModuleType | None, name: str) -> Any:
    """What a dotted name of a module means; None if it means nothing."""
    found: Any = module
    for part in name.split("."):
        if part in getattr(found, "__dataclass_fields__", ()):
            return found.__dataclass_fields__[part]
        try:
            found = getattr(found, part, None)
        except ImportError:
            return None  # A name that is left out with a hint.
    return found


def is_excused(module: str, name: str) -> bool:
    """True if the table has a name, or has it for one of the class's bases."""
    cls, _, attribute = name.partition(".")
    bases = inspect.getmro(find(ours(module), cls)) if attribute else ()
    return not {name, *(f"{base.__name__}.{attribute}" for base in bases)}.isdisjoint(
        LEFT_OUT.get(module, ())
    )


@pytest.mark.parametrize("module", BEAM)
def test_every_name_of_beam_is_here_or_in_the_table(module: str) -> None:
    own = ours(module)
    missing = [name for name in BEAM[module] if find(own, name) is None]
    for name in BEAM[module].keys() - missing:
        missing += [f"{name}.{each}" for each in BEAM[module][name] if find(own, f"{name}.{each}") is None]
    assert [name for name in missing if not is_excused(module, name)] == []


@pytest.mark.parametrize("module", LEFT_OUT)
def test_every_name_in_the_table_is_one_of_beam_that_is_not_here(module: str) -> None:
    names = [*BEAM[module], *(f"{cls}.{each}" for cls in BEAM[module] for each in BEAM[module][cls])]
    assert len(set(LEFT_OUT[module])) == len(LEFT_OUT[module])
    assert set(LEFT_OUT[module]) <= set(names)
    assert [name for name in LEFT_OUT[module] if find(ours(module), name) is not None] == []


def test_every_module_in_the_table_is_one_that_is_not_here() -> None:
    assert len(LEFT_OUT_MODULES) > 40
    assert [module for module in LEFT_OUT_MODULES if ours(module) is not None] == []


def test_imports_say_what_the_table_says() -> None:
    table = TEXT.partition("## Whole modules")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \| (.*) \|$", table, re.MULTILINE)
    told = {name: text for cell, text in rows for name in re.findall(r"`apache_beam\.([\w.]+)`", cell)}
    assert {f"penstock.{name}": text for name, text in told.items()} == INSTEAD


def test_names_say_what_their_table_says() -> None:
    told = {
        f"{module.replace('apache_beam', 'penstock', 1)}.{name}": text
        for module, part in re.findall(
            r"^### (apache_beam\S*)\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL
        )
        for cell, text in re.findall(r"^\| (`[^|]*) \| (.*) \|$", part, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", cell)
    }
    assert len(told) > 100
    assert {name: INSTEAD_OF_NAMES.get(name) for name in told} == told


@pytest.mark.parametrize("module", sorted({name.split(".")[2] for name in INSTEAD if ".io." in name}))
def test_names_of_left_out_modules_that_beams_io_has_say_what_to_do(module: str) -> None:
    beam = pytest.importorskip("apache_beam.io")
    theirs = {
        name
        for name, value in vars(beam).items()
        if getattr(value, "__module__", "").startswith(f"apache_beam.io.{module}")
        and not name.startswith("_")
    }
    assert {name for name in theirs if f"penstock.io.{name}" not in INSTEAD_OF_NAMES} == set()


# Parameters that differ on purpose. An entry that is no longer needed fails the test.
DIFFERENT = {
    "apache_beam": {
        "CombinePerKey": "the function is a parameter with a name",
        "Read": "the others are of managed transforms, and refused by name",
        "Write": "the others are of managed transforms, and refused by name",
    },
    "apache_beam.coders.coders": {
        "FastPrimitivesCoder": "None stands for the PickleCoder",
        "FakeDeterministicFastPrimitivesCoder": "None stands for the PickleCoder",
    },
    "apache_beam.io.fileio": {"MatchContinuously": "it starts when it is built, not when it is imported"},
    "apache_beam.io.kafka": {
        "ReadFromKafka": "what has no meaning without Java is refused by name",
    },
    "apache_beam.io.iobase": {"RestrictionProgress": "what Beam takes as keywords has names here"},
    "apache_beam.ml.inference.base": {
        "ModelHandler": "max_batch_weight, large_model and model_copies are refused by name",
        "RunInference": "a model does not change while a pipeline runs: what would change it is refused by name",
    },
    "apache_beam.testing.util": {"AssertThat": "what Beam takes as keywords has names here"},
    "apache_beam.transforms.core": {"CombinePerKey": "the function is a parameter with a name"},
    "apache_beam.transforms.periodicsequence": {
        "PeriodicImpulse": "it starts when it is built, not when it is imported",
    },
    "apache_beam.transforms.sql": {
        "SqlTransform": "no service computes the query: dialect and ddl are refused by name",
    },
    "apache_beam.typehints.schemas": {"named_fields_to_schema": "the others are of protocol messages"},
}
# Constraints are made by subscribing hints, so what their own constructors call their parameters is nobody's business.
NOT_CALLED = {"apache_beam.typehints.typehints"}


def parameters(function: Any) -> list[inspect.Parameter] | None:
    """The parameters of a function or class; None if it does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def is_same_default(theirs: Any, own: Any) -> bool:
    if theirs is inspect.Parameter.empty or own is inspect.Parameter.empty:
        return theirs is inspect.Parameter.empty
    if hasattr(theirs, "micros"):
        return bool(theirs.micros == getattr(own, "micros", None))
    same_text = re.sub(r"apache_beam| at 0x\w+", "", repr(theirs)) == re.sub(
        r"penstock| at 0x\w+", "", repr(own)
    )
    return (callable(theirs) and callable(own)) or same_text


def fits(theirs: list[inspect.Parameter], own: list[inspect.Parameter]) -> bool:
    """True if each call that theirs allows means the same to ours, which may have further optional parameters."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [parameter for parameter in own if parameter.kind not in variable]
    for place, parameter in enumerate(each for each in theirs if each.kind not in variable):
        if place >= len(named) or named[place].name != parameter.name:
            return False
        if named[place].kind != parameter.kind or not is_same_default(
            parameter.default, named[place].default
        ):
            return False
    further = named[len([each for each in theirs if each.kind not in variable]) :]
    kinds = {parameter.kind for parameter in own}
    return all(each.default is not inspect.Parameter.empty for each in further) and kinds.issuperset(
        each.kind for each in theirs if each.kind in variable
    )


MODULES_WITH_INNER_PARTS = [
    "apache_beam.coders.row_coder",
    "apache_beam.io.external.generate_sequence",
    "apache_beam.io.filesystems",
    "apache_beam.io.kafka",
    "apache_beam.io.range_trackers",
    "apache_beam.io.tfrecordio",
    "apache_beam.options.pipeline_options_validator",
    "apache_beam.transforms.resources",
    "apache_beam.typehints.schema_registry",
    "apache_beam.typehints.sharded_key_type",
    "apache_beam.typehints.trivial_inference",
    "apache_beam.utils.histogram",
    "apache_beam.utils.retry",
    "apache_beam.utils.sharded_key",
    "apache_beam.utils.shared",
]
"""Modules of which Beam's programs call some functions and classes; the rest is not in penstock."""


def _of_beam(module: ModuleType) -> list[str]:
    """The public names of a module that Beam defines."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith("apache_beam")
    ]


@pytest.mark.parametrize(
    "module",
    [module for module in [*BEAM, *MODULES_WITH_INNER_PARTS] if module not in NOT_CALLED and ours(module)],
)
def test_parameters_and_defaults_are_those_of_beam(module: str) -> None:
    beam = pytest.importorskip("apache_beam")
    beam_module = importlib.import_module(module) if module != "apache_beam" else beam
    different = set()
    for name in BEAM.get(module, _of_beam(beam_module)):
        theirs, own = find(beam_module, name), find(ours(module), name)
        # Nobody calls an enumeration to make a value of it.
        if callable(theirs) and callable(own) and not isinstance(own, EnumType):
            pair = parameters(theirs), parameters(own)
            if pair[0] is not None and pair[1] is not None and not fits(pair[0], pair[1]):
                different.add(name)
    assert different == set(DIFFERENT.get(module, ()))


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("def f(a, b=1): ...", True),
        ("def f(a, b=1, *, c=2): ...", True),
        ("def f(a, b=1, c=None, **more): ...", True),
        ("def f(a=None, b=1): ...", True),
        ("def f(a, b=2): ...", False),
        ("def f(a, b): ...", False),
        ("def f(b=1, a=None): ...", False),
        ("def f(a): ...", False),
        ("def f(a, b=1, *, c): ...", False),
        ("def f(*args, **kwargs): ...", False),
    ],
)
def test_the_comparison_of_parameters_finds_what_breaks_a_call(own: str, expected: bool) -> None:
    names: dict[str, Any] = {}
    exec(own, names)
    theirs = parameters(lambda a, b=1: None)
    assert fits(theirs or [], parameters(names["f"]) or []) is expected


REACHED_IN_BEAM = [
    *(
        "io.iobase",
        "metrics.metric",
        "options.pipeline_options",
        "pipeline",
    ),
    *("options.pipeline_options_validator", "options.value_provider", "transforms.combiners"),
    *("transforms.core", "transforms.display", "transforms.ptransform", "transforms.resources"),
    *("transforms.sideinputs", "transforms.stats", "transforms.timeutil", "transforms.trigger"),
    *("transforms.userstate", "transforms.util", "transforms.window", "typehints.batch"),
    *("typehints.schema_registry", "typehints.schemas", "utils.histogram", "utils.shared", "utils.timestamp"),
]


def reached(package: str, modules: list[str]) -> list[str]:
    """Those modules that a program reaches by their names alone, after an import of nothing but the package."""
    program = (
        f"import sys, operator, {package} as beam\n"
        "def is_reached(name):\n"
        "    try:\n"
        "        return operator.attrgetter(name)(beam) is sys.modules[f'{beam.__name__}.{name}']\n"
        "    except AttributeError:\n"
        "        return False\n"
        "print(*filter(is_reached, sys.argv[1:]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *modules], capture_output=True, text=True, check=True
    )
    return ran.stdout.split()


def test_modules_are_reached_by_their_names_alone_where_beams_are() -> None:
    pytest.importorskip("apache_beam")
    assert reached("apache_beam", REACHED_IN_BEAM) == REACHED_IN_BEAM
    # The last one first, since a module that has been named makes others known.
    backwards = REACHED_IN_BEAM[::-1]
    assert reached("penstock", backwards) == backwards


SHOWN_BY = [
    *("pipeline", "io.iobase", "transforms.combiners", "transforms.core", "transforms.ptransform"),
    *("transforms.resources", "transforms.trigger", "transforms.userstate", "transforms.util"),
    "transforms.window",
]


@pytest.mark.parametrize("name", SHOWN_BY)
def test_a_module_shows_what_beams_module_shows_of_others(name: str) -> None:
    pytest.importorskip("apache_beam")
    theirs, own = importlib.import_module(f"apache_beam.{name}"), ours(f"apache_beam.{name}")
    shown = {
        each: value.__module__
        for each, value in vars(theirs).items()
        if not each.startswith("_")
        and not isinstance(value, ModuleType)
        and str(getattr(value, "__module__", "")).startswith("apache_beam.")
    }
    assert len(shown) > 3
    here_too = {each: home for each, home in shown.items() if find(ours(home), each) is not None}
    assert [each for each, home in here_too.items() if find(own, each) is not find(ours(home), each)] == []
