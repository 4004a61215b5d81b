"""The rules of the house, as tests: a rule that no machine keeps is only a wish."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE_FOLDERS = ("sdk", "runner_spark", "connectors", "tests", "examples", "benchmarks", "conformance")
TEXT_FOLDERS = (*CODE_FOLDERS, "docs", ".ci")
TEXT_SUFFIXES = frozenset(
    {"", ".py", ".md", ".toml", ".txt", ".transcript", ".yaml", ".yml", ".sh", ".properties", ".json"}
)

IMPORT_SECONDS_MAX = 0.3

LAYERS = {
    "sdk/penstock": {"penstock", "typing_extensions"},
    "conformance/penstock_figures": {"penstock", "penstock_figures"},
    "conformance/penstock_conformance": {"penstock", "penstock_figures", "penstock_conformance"},
    "runner_spark/penstock_spark": {
        *("penstock", "penstock_spark", "pyspark", "pyarrow", "pandas", "cloudpickle", "typing_extensions"),
    },
    "connectors/penstock_connectors": {
        *("penstock", "penstock_spark", "penstock_connectors", "pyspark", "pyarrow", "typing_extensions"),
    },
}
"""What the modules of a folder may import besides the standard library, at their top or anywhere in a
function."""

EXCEPTIONS = {
    # The one place where the model reaches its runner, when a pipeline runs without naming one.
    "sdk/penstock/runners/runner.py": {"penstock_spark"},
    # Imported when a type hint is NumPy's, and not before.
    "runner_spark/penstock_spark/columns/numpy_batches.py": {"numpy"},
    # SQL is optional, and brings its parser.
    "sdk/penstock/sql/": {"sqlglot"},
    # So is the package for records in Avro.
    "sdk/penstock/sql/tables/avro_rows.py": {"fastavro"},
    # The tree in the terminal is optional, too.
    "runner_spark/penstock_spark/live/tree.py": {"rich"},
    # The result of a run draws its groupings.
    "runner_spark/penstock_spark/runs/result.py": {"penstock_figures"},
    # The command that shows a run serves the page of the runner.
    "conformance/penstock_conformance/showing.py": {"penstock_spark"},
    "conformance/penstock_conformance/controlling.py": {"penstock_spark"},
    "conformance/penstock_conformance/stored_state.py": {"penstock_spark"},
    # Tests of first programs, which run beside them.
    "conformance/penstock_conformance/first_programs/": {"pipeline", "pytest"},
    # A server that the suite starts is a session of the runner with a plugin.
    "conformance/penstock_conformance/connect_server.py": {"penstock_spark"},
    "conformance/penstock_conformance/doctor.py": {"penstock_spark"},
    "connectors/penstock_connectors/database/": {"psycopg", "sqlalchemy"},
    # Values without a coder of their own are pickled; the import is inside of the functions that do it.
    "sdk/penstock/coders/": {"cloudpickle"},
    # Optional packages, each in the folder of the connector that needs it.
    "connectors/penstock_connectors/avro/": {"fastavro"},
    "connectors/penstock_connectors/tfrecord/": {"google_crc32c"},
    "connectors/penstock_connectors/delta/": {"deltalake"},
    "sdk/penstock/io/files/object_stores.py": {"fsspec"},
    # The runner of Beam's pipelines, and nothing else, knows Beam.
    "runner_spark/penstock_spark/beam/": {"apache_beam"},
    # Protocol messages, imported where a time becomes one or is made of one.
    "sdk/penstock/utils/": {"google"},
    "connectors/penstock_connectors/kafka/": {"confluent_kafka", "fastavro"},
}

# Turned round, so that this file does not offend against itself.
NOTES = (*(word[::-1] for word in ("ODOT", "EMXIF", "KCAH")), 3 * "X")
MACHINE_FOLDERS = tuple(f"/{word[::-1]}/" for word in ("krow", "toor"))
NOTE_TO_SELF = re.compile(rf"\b({'|'.join(NOTES)})\b")
MACHINE = re.compile(rf"(?<![\w.~-])({'|'.join(MACHINE_FOLDERS)})|\w\.(?:internal|corp|lan)(?=[/:\s])")

Rule = Callable[[str, str], Iterator[str]]


def python_files() -> list[Path]:
    return sorted(path for folder in CODE_FOLDERS for path in (ROOT / folder).rglob("*.py"))


def text_files() -> list[Path]:
    beside = [path for path in ROOT.iterdir() if path.is_file()]
    inside = [path for folder in TEXT_FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(
        path for path in beside + inside if path.suffix in TEXT_SUFFIXES and "__pycache__" not in path.parts
    )


@lru_cache(maxsize=1)
def nodes_of(text: str) -> list[ast.AST]:
    """All nodes of a module; the rules look at one file after the other."""
    return [*ast.walk(ast.parse(text))]


def opens_with_a_sentence(name: str, text: str) -> Iterator[str]:
    # Only a file that opens otherwise needs a parser.
    found = re.match(r'\s*"""(.*?)"""', text, re.DOTALL)
    docstring = found[1] if found else ast.get_docstring(ast.parse(text)) or ""
    if text.strip() and not docstring.split("\n\n")[0].rstrip().endswith((".", "?", ":")):
        yield f"{name}: the module does not open with a sentence"


def _is_of_penstock(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock")


def imports_only_what_its_layer_may(name: str, text: str) -> Iterator[str]:
    layer = next((folder for folder in LAYERS if name.startswith(folder + "/")), None)
    if layer is None:
        return
    allowed = LAYERS[layer].union(*(more for place, more in EXCEPTIONS.items() if name.startswith(place)))
    nodes = nodes_of(text)
    # What is imported for type checkers alone need not be installed.
    guards = [
        node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    for_types = {inside for guard in guards for inside in ast.walk(guard)}
    for node in nodes:
        if node in for_types and not _is_of_penstock(node):
            continue
        match node:
            case ast.Import(names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(module, _, 0):
                imported = [module or ""]
            case ast.Call(
                ast.Name("__import__") | ast.Attribute(_, "import_module"), [ast.Constant(str(module)), *_]
            ):
                imported = [module]
            case _:
                continue
        for top in {module.partition(".")[0] for module in imported}:
            if top not in sys.stdlib_module_names and top not in allowed:
                yield f"{name}:{node.lineno}: {layer} may not import {top}"


def leaves_no_note_to_self(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if NOTE_TO_SELF.search(line):
            yield f"{name}:{number}: a note to self"


def names_no_machine(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE.search(line):
            yield f"{name}:{number}: a path or name of one machine"


CLOCK_AND_CHANCE = frozenset(
    f"{module}.{name}"
    for module, names in {
        "time": "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns sleep",
        "uuid": "uuid1 uuid4",
        "datetime": "now utcnow today",
        "date": "today",
    }.items()
    for name in names.split()
)
SEAMS = ("sdk/penstock/utils/clock.py", "sdk/penstock/utils/identifiers.py")


def asks_the_clock_and_makes_names_in_one_place(name: str, text: str) -> Iterator[str]:
    if name in SEAMS or not name.startswith(("sdk/", "runner_spark/", "connectors/")):
        return
    for node in nodes_of(text):
        match node:
            case ast.Attribute(ast.Name(owner) | ast.Attribute(_, owner), attribute):
                used = [f"{owner}.{attribute}"]
            case ast.ImportFrom(module, names, 0):
                used = [f"{module}.{alias.name}" for alias in names]
            case _:
                continue
        for each in CLOCK_AND_CHANCE.intersection(used):
            yield f"{name}:{node.lineno}: {each}, where penstock.utils.clock or identifiers should be asked"


ROOMS_WITHOUT_FILES = (
    *(
        f"runner_spark/penstock_spark/{room}/"
        for room in ("sources", "sinks", "formats", "stream", "lowering")
    ),
    "connectors/penstock_connectors/",
)
TOUCHES_FILES = frozenset(["glob", "pathlib", "shutil", "tempfile"])
OF_PATHS = frozenset(["abspath", "basename", "dirname", "join"])


def touches_files_in_one_room(name: str, text: str) -> Iterator[str]:
    if not name.startswith(ROOMS_WITHOUT_FILES):
        return
    for node in nodes_of(text):
        match node:
            case ast.Import(names) if TOUCHES_FILES.intersection(alias.name for alias in names):
                pass
            case ast.ImportFrom(module) if module in TOUCHES_FILES:
                pass
            case ast.Attribute(ast.Attribute(ast.Name("os"), "path"), attribute) if attribute not in OF_PATHS:
                pass
            case ast.Attribute(ast.Name("os"), attribute) if attribute != "path":
                pass
            case ast.Attribute(ast.Attribute(_, "hadoop"), "fs") | ast.Call(ast.Name("open")):
                pass
            case _:
                continue
        yield f"{name}:{node.lineno}: files are the business of penstock_spark.files"


FILE_STORE = "runner_spark/penstock_spark/files/file_store.py"
"""The one module that decides who reaches a path, by its scheme."""


def asks_who_reaches_a_path_in_one_place(name: str, text: str) -> Iterator[str]:
    if name == FILE_STORE or not name.startswith(("runner_spark/penstock_spark/", "connectors/")):
        return
    for node in nodes_of(text):
        match node:
            case ast.Attribute(_, "get_scheme"):
                pass
            case ast.ImportFrom("penstock.io.files.object_stores", names) if any(
                each.name in ("ObjectStore", "store_of") for each in names
            ):
                pass
            case _:
                continue
        yield f"{name}:{node.lineno}: ask {FILE_STORE} who reaches a path, and for what opens it"


CODE_RULES: tuple[Rule, ...] = (
    opens_with_a_sentence,
    imports_only_what_its_layer_may,
    asks_the_clock_and_makes_names_in_one_place,
    touches_files_in_one_room,
    asks_who_reaches_a_path_in_one_place,
)
TEXT_RULES: tuple[Rule, ...] = (leaves_no_note_to_self, names_no_machine)


@cache
def offences() -> dict[Rule, list[str]]:
    """What each rule finds in all files; each file is read and parsed once for all rules."""
    found: dict[Rule, list[str]] = {rule: [] for rule in CODE_RULES + TEXT_RULES}
    for rules, files in ((CODE_RULES, python_files()), (TEXT_RULES, text_files())):
        assert files
        for file in files:
            name, text = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
            for rule in rules:
                try:
                    found[rule] += rule(name, text)
                except SyntaxError as error:
                    found[rule].append(f"{name}:{error.lineno}: {error.msg}")
    return found


@pytest.mark.parametrize("rule", CODE_RULES + TEXT_RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps_the_rule(rule: Rule) -> None:
    assert not offences()[rule], "\n" + "\n".join(offences()[rule])


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        (opens_with_a_sentence, "sdk/penstock/a.py", "x = 1\n"),
        (opens_with_a_sentence, "sdk/penstock/a.py", '"""no sentence"""\n'),
        (imports_only_what_its_layer_may, "sdk/penstock/a.py", "def f():\n    from pyspark import sql\n"),
        (imports_only_what_its_layer_may, "sdk/penstock/a.py", "import cloudpickle\n"),
        (imports_only_what_its_layer_may, "sdk/penstock/a.py", "importlib.import_module('pyarrow.lib')\n"),
        (imports_only_what_its_layer_may, "runner_spark/penstock_spark/a.py", "import apache_beam.io\n"),
        (asks_the_clock_and_makes_names_in_one_place, "sdk/penstock/a.py", "import time\ntime.time()\n"),
        (asks_the_clock_and_makes_names_in_one_place, "sdk/penstock/a.py", "from uuid import uuid4\n"),
        (
            asks_the_clock_and_makes_names_in_one_place,
            "runner_spark/penstock_spark/a.py",
            "import datetime\ndatetime.datetime.now()\n",
        ),
        *(
            (touches_files_in_one_room, f"{ROOMS_WITHOUT_FILES[0]}a.py", text)
            for text in (
                "import shutil\n",
                "from pathlib import Path\n",
                "os.remove(path)\n",
                "os.path.exists(path)\n",
                "open(path)\n",
                "jvm.org.apache.hadoop.fs.Path\n",
            )
        ),
        (
            asks_who_reaches_a_path_in_one_place,
            "runner_spark/penstock_spark/a.py",
            "FileSystems.get_scheme(path) is None\n",
        ),
        (
            asks_who_reaches_a_path_in_one_place,
            "connectors/a.py",
            "from penstock.io.files.object_stores import store_of\n",
        ),
        (leaves_no_note_to_self, "a.md", f"# {NOTES[0]}: later\n"),
        (names_no_machine, "a.md", f"see {MACHINE_FOLDERS[0]}main\n"),
        (names_no_machine, "a.md", "http://mirror.{}/x\n".format("internal")),
    ],
)
def test_each_rule_finds_what_it_forbids(rule: Rule, name: str, text: str) -> None:
    assert list(rule(name, text))


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        (imports_only_what_its_layer_may, "sdk/penstock/runners/runner.py", "import penstock_spark.runner\n"),
        (imports_only_what_its_layer_may, "sdk/penstock/a.py", "from . import b\nimport json, penstock.c\n"),
        (touches_files_in_one_room, f"{ROOMS_WITHOUT_FILES[0]}a.py", "os.path.join(a, b)\nformat.open(a)\n"),
        (touches_files_in_one_room, "runner_spark/penstock_spark/files/a.py", "open(path)\n"),
        (names_no_machine, "a.md", f"docs{MACHINE_FOLDERS[0]}x, a{MACHINE_FOLDERS[1]}b\n"),
    ],
)
def test_no_rule_forbids_what_is_allowed(rule: Rule, name: str, text: str) -> None:
    assert list(rule(name, text)) == []


def test_importing_the_model_is_quick_and_brings_no_engine() -> None:
    code = (
        "import sys, time; start = time.process_time(); import penstock; "
        "print(time.process_time() - start, *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "sdk")}
    # One quick run is enough: what else the machine is doing only makes the others slower.
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        seconds, *modules = run.stdout.split()
        assert not {"pyspark", "penstock_spark", "pyarrow", "pandas", "numpy", "cloudpickle"} & {*modules}
        if float(seconds) < IMPORT_SECONDS_MAX:
            break
    assert float(seconds) < IMPORT_SECONDS_MAX


@pytest.mark.parametrize(
    "command",
    ["ruff check .", "ruff format --check .", "mypy"],
)
def test_the_checkers_are_content(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], capture_output=True, text=True, cwd=ROOT, timeout=600
    )
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


def undocumented_methods(texts: dict[str, str]) -> list[str]:
    """Public methods that neither have a docstring nor override one that has (ruff's D102 looks at no base)."""
    classes: dict[str, list[ast.ClassDef]] = {}
    public: list[tuple[str, ast.ClassDef]] = []

    def visit(node: ast.AST, place: str, is_public: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                classes.setdefault(child.name, []).append(child)
                shown = is_public and not child.name.startswith("_")
                if shown:
                    public.append((f"{place}.{child.name}", child))
                visit(child, f"{place}.{child.name}", shown)
            else:
                visit(child, place, is_public and not isinstance(child, ast.FunctionDef))

    def methods(cls: ast.ClassDef) -> Iterator[ast.FunctionDef]:
        for child in cls.body:
            exempt = r"\w+\.(setter|deleter)|(typing\.)?(overload|override)"
            if isinstance(child, ast.FunctionDef) and not any(
                re.fullmatch(exempt, ast.unparse(each)) for each in child.decorator_list
            ):
                yield child

    def is_documented(cls: ast.ClassDef, name: str, seen: set[str]) -> bool:
        if any(each.name == name and ast.get_docstring(each) for each in methods(cls)):
            return True
        bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in cls.bases} - seen
        return any(is_documented(one, name, seen | bases) for base in bases for one in classes.get(base, ()))

    for place, text in texts.items():
        visit(ast.parse(text), place, True)
    return [
        f"{place}.{method.name}"
        for place, cls in public
        for method in methods(cls)
        if (not method.name.startswith("_") or method.name in ("__call__", "__new__"))
        and not is_documented(cls, method.name, {cls.name})
    ]


def test_every_public_method_of_the_sdk_has_a_docstring_or_inherits_one() -> None:
    files = sorted((ROOT / "sdk").rglob("*.py"))
    assert undocumented_methods({str(path): path.read_text(encoding="utf-8") for path in files}) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class A:\n def f(self): pass\n", ["m.A.f"]),
        ("class A:\n def f(self): 'Does.'\nclass B(A):\n def f(self): pass\n", []),
        (
            "class _A:\n def f(self): 'Does.'\nclass B(x._A[int]):\n def f(self): pass\n def g(self): pass\n",
            ["m.B.g"],
        ),
        (
            "class _A:\n def f(self): pass\nclass A:\n def _f(self): pass\n def __eq__(self, other): pass\n",
            [],
        ),
    ],
)
def test_a_method_without_any_docstring_is_found(text: str, found: list[str]) -> None:
    assert undocumented_methods({"m": text}) == found


def test_every_pass_has_a_golden_file_and_every_golden_file_a_pass() -> None:
    passes = {path.stem for path in (ROOT / "runner_spark/penstock_spark/passes").glob("[!_]*.py")}
    golden = {path.stem for path in (ROOT / "tests/golden/passes").iterdir()}
    assert passes
    assert passes == golden


def programs_run_by(text: str) -> set[str]:
    """The examples that a test file runs: by a call of their ``run``, or as programs of the table ``PRINTED``."""
    found: set[str] = set()
    tree = ast.parse(text)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        modules: dict[str, str] = {}
        for node in ast.walk(function):
            match node:
                case ast.Assign([ast.Name(name)], call) if imported_by(call):
                    modules[name] = imported_by(call)
        for node in ast.walk(function):
            match node:
                case ast.Call(ast.Attribute(ast.Name(name), "run")) if name in modules:
                    found.add(modules[name])
                case ast.Call(ast.Attribute(call, "run")) if imported_by(call):
                    found.add(imported_by(call))
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name("PRINTED")], ast.Dict(names)):
                found |= {Path(name.value).stem for name in names if isinstance(name, ast.Constant)}
    return found


def imported_by(call: ast.expr) -> str:
    """The module that a call of ``import_module`` imports, or nothing."""
    match call:
        case ast.Call(
            ast.Name("import_module") | ast.Attribute(_, "import_module"), [ast.Constant(str(module))]
        ):
            return module
    return ""


def not_run(examples: Path, tests: Path) -> list[str]:
    """The programs of a folder that no test of another one runs; a module of a package is not a program."""
    # The command `spark-pipelines` runs the definitions of its projects (tests/spark/test_declarative_pipelines.py).
    of_projects = {spec.parent / "definitions" for spec in examples.rglob("spark-pipeline.yml")}
    found = [
        path
        for path in examples.rglob("[!_]*.py")
        if not (path.parent / "__init__.py").exists() and path.parent not in of_projects
    ]
    programs = sorted(path.stem for path in found)
    assert programs
    run = set().union(*(programs_run_by(path.read_text("utf-8")) for path in tests.rglob("test_*.py")))
    return [program for program in programs if program not in run]


def test_a_test_runs_every_example() -> None:
    # Those that need a server of their own are run beside the other connectors.
    forgotten = (
        set(not_run(ROOT / "examples", ROOT / "tests" / room)) for room in ("examples", "connectors")
    )
    assert set.intersection(*forgotten) == set()


def test_an_example_that_tests_only_speak_of_is_found(tmp_path: Path) -> None:
    examples, tests = tmp_path / "examples", tmp_path / "tests"
    for folder in (examples / "more", tests):
        folder.mkdir(parents=True)
    for name in ("tested", "more/printed", "planted", "_helper"):
        (examples / f"{name}.py").touch()
    (tests / "test_them.py").write_text(
        """'planted is run'
PRINTED = {"more/printed.py": []}
def test_some():
    tested, planted = 1, 2
    tested = import_module("tested")
    tested.run([])
    other = import_module("planted")
    other.check(), planted.run()  # other.run()
"""
    )
    assert not_run(examples, tests) == ["planted"]


def test_tests_are_one_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    assert [folder.name for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_packages_are_the_ones_of_this_tree() -> None:
    folders = {
        "penstock": "sdk",
        "penstock_spark": "runner_spark",
        "penstock_connectors": "connectors",
        "penstock_conformance": "conformance",
        "penstock_figures": "conformance",
    }
    for package, folder in folders.items():
        specification = importlib.util.find_spec(package)
        assert specification is not None
        assert Path(str(specification.origin)).is_relative_to(ROOT / folder)
