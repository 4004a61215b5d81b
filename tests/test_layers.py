"""The layers of the packages: imports point down, wherever they stand, and no files and no folders make circles."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "penstock": "sdk",
    "penstock_spark": "runner_spark",
    "penstock_connectors": "connectors",
    "penstock_conformance": "conformance",
    "penstock_figures": "conformance",
}

LAYERS = (
    ("where",),
    ("error",),
    ("utils",),
    ("checks",),
    ("tracebacks",),
    ("elements",),
    ("base",),
    ("left_out", "absent"),
    ("typehints",),
    ("values",),
    ("metrics",),
    ("options",),
    ("coders",),
    ("windows",),
    ("functions",),
    ("scalars",),
    ("graph",),
    ("diagrams",),
    ("machines",),
    ("construction",),
    ("runners",),
    ("transforms",),
    ("relations",),
    ("io",),
    ("sql", "ml"),
    ("testing", "notebooks"),
)
"""The folders and files of the SDK, from the ground up. Each imports from itself and from those before it."""

RUNNER_LAYERS = (
    ("process",),
    ("session",),
    ("columns",),
    ("plan",),
    ("reports",),
    ("shipping",),
    ("files",),
    ("worker",),
    ("folding",),
    ("stages",),
    ("sources",),
    ("sinks",),
    ("formats",),
    ("source_watermarks",),
    ("stream",),
    ("passes",),
    ("compiler",),
    ("checkpoints",),
    ("lowering",),
    ("live",),
    ("runs",),
    ("supported",),
    ("runner",),
    ("beam",),
    ("connecting",),
)
"""The folders and files of the runner, likewise. Nothing imports the last one, which is for connectors."""

INTERFACE = "penstock_spark.connecting"
"""The package of the runner whose modules connectors may import."""

CONNECTORS = ("connectors/penstock_connectors", "examples/redis_connector/penstock_redis")
"""The folders of connectors: penstock's own, and the one of the examples, which knows no more than a stranger."""

FACADES = frozenset(
    f"penstock.{name}"
    for name in (
        *("__main__", "io", "io.iobase", "pipeline", "pvalue", "transforms"),
        *("transforms.combiners", "transforms.core", "transforms.display", "transforms.ptransform"),
        "transforms.periodicsequence",
        *("transforms.resources", "transforms.sideinputs", "transforms.sql", "transforms.timeutil"),
        *("transforms.trigger", "transforms.userstate", "transforms.util", "transforms.window"),
        *("ml.inference", "ml.inference.base"),
        *("typehints.batch", "utils.histogram"),
    )
)
"""Beam's paths to what is defined elsewhere. They come last: nothing but another facade imports them."""

Imports = dict[str, set[str]]
"""The modules that each module imports."""


def _modules(package: str) -> dict[str, Path]:
    folder = ROOT / PACKAGES[package]
    found = {}
    for path in sorted((folder / package).rglob("*.py")):
        if "first_programs" in path.parts:
            # Programs that `penstock new` copies are not modules of the package.
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(texts: Mapping[str, str], *, for_types: bool) -> Imports:
    """Which modules import which, inside functions too.

    Args:
        texts: The modules.
        for_types: Whether imports under TYPE_CHECKING count.
    """
    return {name: set(_known(name, _imported(text, for_types), texts)) for name, text in texts.items()}


@dataclass
class Read:
    """What the rules ask of a module.

    Attributes:
        imported: What it imports, as dotted names.
        imported_for_types: Those of them that are imported under TYPE_CHECKING.
        packages_in_functions: The packages from which it imports in functions.
        defined: The private names that it defines.
        touched: The private names that it takes from another object or module.
    """

    imported: list[str] = field(default_factory=list)
    imported_for_types: list[str] = field(default_factory=list)
    packages_in_functions: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)


@cache
def read(text: str) -> Read:
    """Parses a module; the tests ask for the same modules many times."""
    found = Read()
    _read(ast.parse(text), found, for_types=False, in_function=False)
    return found


def _read(node: ast.AST, found: Read, for_types: bool, in_function: bool) -> None:
    match node:
        case ast.Import(names):
            (found.imported_for_types if for_types else found.imported).extend(each.name for each in names)
        case ast.ImportFrom(module, names):
            asked = [f"{module}.{each.name}" for each in names]
            (found.imported_for_types if for_types else found.imported).extend(asked)
            if in_function:
                found.packages_in_functions.add(str(module).split(".")[0])
        case ast.If(test) if "TYPE_CHECKING" in ast.unparse(test):
            for_types = True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            in_function = True
    _read_names(node, found)
    for child in ast.iter_child_nodes(node):
        _read(child, found, for_types, in_function)


def _read_names(node: ast.AST, found: Read) -> None:
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name) if _is_private(name):
            found.defined.add(name)
        case ast.Name(name, ast.Store()) if _is_private(name):
            found.defined.add(name)
        case ast.Attribute(ast.Name("self" | "cls"), name, ast.Store()) if _is_private(name):
            found.defined.add(name)
        case ast.Attribute(ast.Name("self" | "cls"), _) | ast.Attribute(ast.Call(ast.Name("super")), _):
            pass
        case ast.Attribute(_, name) if _is_private(name):
            found.touched.add(name)
        case ast.ImportFrom(str(module), names) if module.startswith("penstock"):
            found.touched.update(filter(_is_private, (alias.name for alias in names)))
        case ast.Constant(str(name)) if _is_private(name):
            found.defined.add(name)  # It may be in `__slots__`.


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name.isidentifier()


def _imported(text: str, for_types: bool) -> list[str]:
    """What a module imports, as dotted names."""
    return read(text).imported + (read(text).imported_for_types if for_types else [])


def _known(name: str, asked: Iterable[str], known: Mapping[str, str]) -> Iterator[str]:
    for path in asked:
        while path and path not in known:
            path = path.rpartition(".")[0]
        # The package itself stands for what a program imports from it.
        if path and path != name and "." in path:
            yield path


def _layer(module: str) -> int:
    if module in FACADES:
        return len(LAYERS)
    package, room = module.split(".")[:2]
    layers = LAYERS if package == "penstock" else RUNNER_LAYERS
    return next(number for number, rooms in enumerate(layers) if room in rooms)


def upward(imports: Imports) -> list[str]:
    """The imports that point up, as text; what the package itself imports is not one."""
    return [
        f"{module} imports {other}"
        for module, others in sorted(imports.items())
        for other in sorted(others)
        if "." in module and _layer(other) > _layer(module)
    ]


def circles(imports: Imports) -> list[list[str]]:
    """The modules that import each other, directly or through others."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            for other in imports[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        reached[module] = seen
    found = {frozenset(other for other in reached[module] if module in reached[other]) for module in imports}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


@cache
def _texts(package: str) -> Mapping[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in _modules(package).items()}


def test_every_facade_is_a_module() -> None:
    assert set(_modules("penstock")) >= FACADES


@pytest.mark.parametrize("package", ["penstock", "penstock_spark"])
@pytest.mark.parametrize("for_types", [False, True], ids=["when it runs", "for types, too"])
def test_imports_point_down(package: str, for_types: bool) -> None:
    assert upward(imports_of(_texts(package), for_types=for_types)) == []


# Some modules of the runner enter what they have with the model, and that only once.
@pytest.mark.parametrize("package", ["penstock", "penstock_conformance", "penstock_figures"])
def test_every_module_can_be_the_first_that_a_program_imports(package: str) -> None:
    # A package imports modules of its own, too, so that a circle may lead through it.
    program = f"""
import gc, importlib, sys
# Modules that are imported again and again leave much garbage, for which there is room.
gc.disable()
import {package}
before = dict(sys.modules)
for name in {sorted(_modules(package))!r}:
    for other in set(sys.modules) - set(before):
        if other.split(".")[0] == {package!r}:
            del sys.modules[other]
    if name not in before and not name.endswith("__main__"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(name, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_import_each_other_not_even_for_types(package: str) -> None:
    assert circles(imports_of(_texts(package), for_types=True)) == []


def imports_of_folders(imports: Imports) -> Imports:
    """Which folders import which; a folder and what lies in it are one, and a file beside folders is a folder."""
    folders: Imports = {}
    for module, others in imports.items():
        if module not in FACADES:
            for other in others - FACADES:
                one, another = _folder(module), _folder(other)
                folders.setdefault(another, set())
                if not f"{one}.".startswith(f"{another}.") and not f"{another}.".startswith(f"{one}."):
                    folders.setdefault(one, set()).add(another)
    return folders


def _folder(module: str) -> str:
    """The folder of a module: `package.room.module` lies in `package.room`."""
    above, _, _ = module.rpartition(".")
    return above if "." in above else module


def test_no_folders_import_each_other() -> None:
    found = [
        circle
        for package in PACKAGES
        for circle in circles(imports_of_folders(imports_of(_texts(package), for_types=True)))
    ]
    assert found == []


def test_a_folder_that_imports_one_that_imports_it_is_found() -> None:
    texts = _texts("penstock_spark")
    one, another = "penstock_spark.plan.schema_text", "penstock_spark.reports.secrets"
    lines = {
        one: "from penstock_spark.reports import lineage\n",
        another: "from penstock_spark.plan import windowing\n",
    }
    changed = imports_of(
        {**texts, **{name: texts[name] + line for name, line in lines.items()}}, for_types=True
    )
    assert circles(changed) == []
    [circle] = circles(imports_of_folders(changed))
    assert {"penstock_spark.plan", "penstock_spark.reports"} <= set(circle)


PRIVATE_NAMES_OF_LIBRARIES = {
    "penstock_spark.files.file_store": {"_copy", "_list"},
    "penstock_connectors.database.types": {"_Binary"},
    "penstock_connectors.iceberg.table": {"_table"},
    "penstock_spark.session.connect.backend": {"_plan"},
    "penstock_spark.session.connect.served_batches": {"_builder", "_client"},
}
"""Attributes of other people's objects that have the names of attributes of ours. All of Beam's are in `beam`."""

OF_NAMED_TUPLES = frozenset({"_asdict", "_fields", "_make", "_replace"})


def private_names_touched(texts: Mapping[str, str]) -> list[str]:
    """The private names that a module touches though only other modules define them; imported names too."""
    names = {module: read(text) for module, text in texts.items()}
    defined = set().union(*(own.defined for own in names.values()))
    return [
        f"{module} touches {name}"
        for module, own in sorted(names.items())
        if module not in FACADES and not module.startswith("penstock_spark.beam.")
        for name in sorted(own.touched & defined - own.defined - OF_NAMED_TUPLES)
        if name not in PRIVATE_NAMES_OF_LIBRARIES.get(module, ())
    ]


def test_no_private_name_of_another_module_is_touched() -> None:
    texts = {name: text for package in PACKAGES for name, text in _texts(package).items()}
    assert private_names_touched(texts) == []


@pytest.mark.parametrize(
    "line", ["def f(options):\n    return options._flags\n", "from penstock.metrics.cells import _parts\n"]
)
def test_a_private_name_of_another_module_is_found(line: str) -> None:
    texts = {**_texts("penstock"), "penstock.metrics.cells": "def _parts(): ...\n"}
    name = "penstock.io.streaming.schedules"
    [found] = private_names_touched({**texts, name: texts[name] + line})
    assert found.startswith(f"{name} touches _")


LATE_IMPORTS = {
    "penstock": {"penstock.absent"},
    "penstock_connectors": {
        "penstock_connectors.database.address",
        "penstock_connectors.database.changes",
        "penstock_connectors.database.reader",
        "penstock_connectors.database.writer",
    },
    "penstock_spark": {
        "penstock_spark",
        "penstock_spark.columns.batches",
        "penstock_spark.formats.ranges.stream",
        "penstock_spark.live.views",
        "penstock_spark.runner",
        "penstock_spark.session.backends",
        "penstock_spark.session.spark_versions",
        "penstock_spark.stream.level_processor",
        "penstock_spark.stream.resharding.seed_processor",
    },
}
"""Modules that import in a function. In the SDK: what is left out of Beam is looked up when a program first asks for
it. In the runner: workers import
the package and the modules that Spark unpickles in each task, and need little of them; a library of batches is loaded
when a hint names it, one that draws trees when a run is shown as a tree, a batch run loads nothing of streams, and only
a session of Spark Connect needs the packages of Spark Connect. The
connector of databases loads what needs their packages when a run reads or writes one."""


def late(texts: Mapping[str, str]) -> set[str]:
    """The modules that import others of their package inside of functions."""
    return {name for name, text in texts.items() if name.split(".")[0] in read(text).packages_in_functions}


@pytest.mark.parametrize("package", LATE_IMPORTS)
def test_imports_stand_at_the_top(package: str) -> None:
    assert late(_texts(package)) == LATE_IMPORTS[package]


def test_an_import_inside_a_function_is_found() -> None:
    texts = _texts("penstock")
    name = "penstock.io.textio"
    mutant = "def f():\n    from penstock.error import three_parts\n"
    assert late({name: texts[name] + mutant}) == {name}


OF_A_KIND_OF_SESSION = frozenset(
    {
        *("_jvm", "_jsc", "_jdf", "_jc", "_jsparkSession", "_jsq", "_gateway"),
        *("sparkContext", "SparkContext", "rdd", "broadcast", "accumulator"),
        *("addArtifacts", "cloneSession", "interruptTag", "session_id"),
    }
)
"""The names of PySpark that only a classic session has, or only one of Spark Connect."""

KINDS_OF_SESSIONS = ("penstock_spark.session.classic.", "penstock_spark.session.connect.")


def that_know_the_session(texts: Mapping[str, str]) -> list[str]:
    """The modules that name what only one kind of session has, except the two backends, as text."""
    return [
        f"{name} names {each}"
        for name, text in sorted(texts.items())
        if not name.startswith(KINDS_OF_SESSIONS)
        for each in sorted(_names_in(text) & OF_A_KIND_OF_SESSION)
    ]


def _names_in(text: str) -> set[str]:
    """The attributes and the imported names of a module."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(attr=name):
                found.add(name)
            case ast.ImportFrom(names=names):
                found |= {each.name for each in names}
    return found


def test_only_the_backends_know_which_kind_of_session_there_is() -> None:
    packages = ("penstock", "penstock_spark", "penstock_connectors")
    assert (
        that_know_the_session({name: text for each in packages for name, text in _texts(each).items()}) == []
    )


@pytest.mark.parametrize(
    "line", ["def f(spark):\n    return spark.sparkContext.master\n", "from pyspark import SparkContext\n"]
)
def test_a_module_that_knows_the_kind_of_session_is_found(line: str) -> None:
    name = "penstock_spark.lowering.frames"
    assert len(that_know_the_session({name: _texts("penstock_spark")[name] + line})) == 1


def beyond_the_interface(texts: Mapping[str, str]) -> list[str]:
    """The imports of connectors from the runner beside its interface, and from another connector, as text."""
    return [
        f"{name} imports {other}"
        for name, text in sorted(texts.items())
        for other in _imported(text, True)
        if _is_beyond(name, other)
    ]


def _is_beyond(name: str, other: str) -> bool:
    package, *path = other.split(".")
    if package == "penstock_spark":
        return path[:1] != ["connecting"] or len(path) < 2
    if package != "penstock_connectors" or name.partition(".")[0] != package:
        return package == "penstock_connectors"
    # A module beside the connectors is for all of them.
    folder = name.split(".")[1:2]
    return path[:1] != folder and (ROOT / "connectors" / package / path[0]).is_dir()


def _texts_of_connectors() -> dict[str, str]:
    return {
        ".".join(path.relative_to((ROOT / folder).parent).with_suffix("").parts): path.read_text(
            encoding="utf-8"
        )
        for folder in CONNECTORS
        for path in (ROOT / folder).rglob("*.py")
    }


def test_connectors_import_of_the_runner_only_its_interface_and_no_other_connector() -> None:
    texts = _texts_of_connectors()
    assert {name.split(".")[0] for name in texts} == {"penstock_connectors", "penstock_redis"}
    assert beyond_the_interface(texts) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("penstock_connectors.delta.scan", "from penstock_spark.sources.scan import Scan"),
        ("penstock_connectors.delta.scan", "from penstock_spark import connecting"),
        ("penstock_connectors.delta.scan", "def f():\n    import penstock_spark.runner"),
        ("penstock_connectors.delta.scan", "from penstock_connectors.iceberg.scan import open_iceberg"),
        ("penstock_redis.entries", "from penstock_connectors.packages import FASTAVRO"),
    ],
)
def test_an_import_beyond_the_interface_is_found(name: str, line: str) -> None:
    assert len(beyond_the_interface({name: line})) == 1


def test_each_name_of_the_interface_is_for_a_connector() -> None:
    modules = [name for name in _modules("penstock_spark") if name.startswith(f"{INTERFACE}.")]
    offered = {f"{name}.{each}" for name in modules for each in importlib.import_module(name).__all__}
    used = {other for text in _texts_of_connectors().values() for other in _imported(text, True)}
    assert sorted(offered - used) == []
    assert sorted(other for other in used - offered if other.startswith(f"{INTERFACE}.")) == []


def test_the_page_about_connectors_names_the_interface() -> None:
    text = (
        (ROOT / "docs" / "writing_connectors.md").read_text(encoding="utf-8").partition("## The interface")[2]
    )
    offered = {
        name: list(importlib.import_module(name).__all__)
        for name in _modules("penstock_spark")
        if name.startswith(f"{INTERFACE}.")
    }
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `penstock_spark.")]
    assert {names.strip(" `"): re.findall(r"`(\w+)`", cell) for names, cell in rows} == offered


MUTANTS = {
    "at the top": "from penstock.transforms.elements.create import Create\n",
    "inside a function": "def f():\n    from penstock.transforms.elements.create import Create\n",
    "by its module": "def f():\n    import penstock.transforms.elements.create\n",
    "from its package": "from penstock.transforms.elements import create\n",
}


def test_an_import_of_the_runner_that_points_up_is_found() -> None:
    texts = _texts("penstock_spark")
    name = "penstock_spark.plan.batch_plan"
    line = "def f():\n    from penstock_spark.lowering.jobs import run_plan\n"
    changed = imports_of({**texts, name: texts[name] + line}, for_types=False)
    assert upward(changed) == [f"{name} imports penstock_spark.lowering.jobs"]


@pytest.mark.parametrize("line", MUTANTS.values(), ids=MUTANTS)
def test_an_import_that_points_up_is_found(line: str) -> None:
    texts = _texts("penstock")
    name = "penstock.coders.base"
    imports = imports_of({**texts, name: texts[name] + line}, for_types=False)
    assert upward(imports) == [f"{name} imports penstock.transforms.elements.create"]
    assert any(
        name in circle and "penstock.transforms.elements.create" in circle for circle in circles(imports)
    )


def test_an_import_for_types_is_a_circle_for_types_and_points_up() -> None:
    texts = _texts("penstock")
    name = "penstock.coders.base"
    line = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from penstock.pvalue import PCollection\n"
    )
    changed = {**texts, name: texts[name] + line}
    assert circles(imports_of(changed, for_types=False)) == []
    assert circles(imports_of(changed, for_types=True)) != []
    assert upward(imports_of(changed, for_types=False)) == []
    assert upward(imports_of(changed, for_types=True)) == [f"{name} imports penstock.pvalue"]
