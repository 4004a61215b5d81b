"""What mypy, and with it an editor, knows of a user's pipeline."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.installing import files_of_page

_ROOT = Path(__file__).parents[2]

_BEGINNING = """
from __future__ import annotations
from collections.abc import Iterable, Iterator
from typing import NamedTuple
import penstock as beam
from penstock.io import ReadFromCsv, ReadFromParquet, ReadFromText, WriteToCsv, WriteToParquet, WriteToText
from penstock.io.watch import PollResult, Watch
from penstock.transforms.userstate import CombiningValueRuntimeState, CombiningValueStateSpec

class Words(beam.DoFn):
    def process(self, element: str) -> Iterator[str | beam.TaggedOutput[str, int]]:
        yield from element.split()

class InWindows(beam.DoFn):
    COUNT = CombiningValueStateSpec("count", combine_fn=sum)

    def process(
        self,
        element: tuple[str, int],
        window: beam.window.BoundedWindow = beam.DoFn.WindowParam,
        count: CombiningValueRuntimeState = beam.DoFn.StateParam(COUNT),
    ) -> Iterator[tuple[str, float]]:
        count.add(element[1])
        yield element[0], window.end.micros / 1e6

class Lengths(beam.PTransform):
    def expand(self, pcoll: beam.PCollection[str]) -> beam.PCollection[int]:
        return pcoll | beam.Map(len)

class TypedLengths(beam.PTransform[beam.PCollection[str], beam.PCollection[int]]):
    def expand(self, pcoll: beam.PCollection[str]) -> beam.PCollection[int]:
        return pcoll | "Length" >> beam.Map(len)

class Unannotated(beam.PTransform):
    def expand(self, pcoll):  # type: ignore[no-untyped-def]
        return pcoll

@beam.ptransform_fn
def Twice(pcoll: beam.PCollection[str], label: str) -> beam.PCollection[int]:
    return pcoll | label >> beam.Map(len)

class Mean(beam.CombineFn):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add_input(self, accumulator: tuple[int, int], element: int) -> tuple[int, int]:
        return accumulator[0] + element, accumulator[1] + 1

    def merge_accumulators(self, accumulators: Iterable[tuple[int, int]]) -> tuple[int, int]:
        sums, counts = zip(*accumulators, strict=True)
        return sum(sums), sum(counts)

    def extract_output(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

def pair(word: str) -> tuple[str, int]:
    return word, len(word)

def letters_of(word: str) -> PollResult[str]:
    return PollResult.complete(word)

p = beam.Pipeline()
lines = p | "Read" >> ReadFromText("in.txt")
words = lines | "Split" >> beam.FlatMap(str.split)
pairs = words | "Pair" >> beam.Map(pair)
outputs = words | beam.ParDo(Words()).with_outputs("a", main="b")
main, tagged = outputs
"""

_TYPES = {
    "lines": "PCollection[str]",
    "words": "PCollection[str]",
    "lines | beam.ParDo(Words())": "PCollection[str]",
    "pairs | beam.ParDo(InWindows())": "PCollection[tuple[str, float]]",
    "words | 'Letters' >> Watch(letters_of, 60)": "PCollection[tuple[str, str]]",
    "words | beam.Filter(lambda word: len(word) > 3)": "PCollection[str]",
    "words | 'Keep' >> beam.Filter(str.isupper)": "PCollection[str]",
    "words | beam.Map(len).with_output_types(float)": "PCollection[float]",
    "words | beam.Map(lambda word: (word, 1))": "PCollection[tuple[Any, int]]",
    "words | beam.Map(lambda word: beam.window.TimestampedValue(1.5, 0))": "PCollection[float]",
    "words | beam.FlatMap(lambda word: [beam.window.TimestampedValue(1.5, 0)])": "PCollection[float]",
    "pairs": "PCollection[tuple[str, int]]",
    "pairs | 'Group' >> beam.GroupByKey()": "PCollection[tuple[str, Iterable[int]]]",
    "pairs | beam.CombinePerKey(sum)": "PCollection[tuple[str, Any]]",
    "pairs | 'Mean' >> beam.CombinePerKey(Mean())": "PCollection[tuple[str, Any]]",
    "words | beam.combiners.Count.PerElement()": "PCollection[tuple[str, int]]",
    "words | beam.combiners.Count.Globally()": "PCollection[int]",
    "words | beam.combiners.ToList()": "PCollection[list[str]]",
    "words | beam.CombineGlobally(len)": "PCollection[Any]",
    "words | beam.WindowInto(beam.window.FixedWindows(60))": "PCollection[str]",
    "words | beam.Reshuffle()": "PCollection[str]",
    "(words, lines) | beam.Flatten()": "PCollection[str]",
    "[words, lines] | 'Both' >> beam.Flatten()": "PCollection[str]",
    "(pairs, pairs) | beam.CoGroupByKey()": "PCollection[tuple[Any, Any]]",
    "{'a': pairs, 'b': pairs} | beam.CoGroupByKey()": "PCollection[tuple[Any, Any]]",
    "words | beam.GroupBy(len)": "PCollection[tuple[Any, Iterable[str]]]",
    "words | beam.Select(length=len)": "PCollection[Row]",
    "words | Lengths()": "PCollection[int]",
    "words | 'Named' >> TypedLengths()": "PCollection[int]",
    "words | Unannotated()": "Any",
    "words | Twice('x')": "PCollection[int]",
    "words | (beam.Map(len) | beam.Map(str))": "PCollection[str]",
    "outputs": "DoOutputsTuple",
    "outputs.a": "PCollection[Any]",
    "outputs['b']": "PCollection[Any]",
    "tagged": "PCollection[Any]",
    "p | beam.Create([1, 2])": "PCollection[int]",
    "p | 'Items' >> beam.Create({'a': 1})": "PCollection[tuple[str, int]]",
    "p | beam.Impulse()": "PCollection[bytes]",
    "p | ReadFromCsv('in.csv')": "PCollection[Row]",
    "p | ReadFromParquet('in.parquet')": "PCollection[Any]",
    "words | WriteToText('out')": "PCollection[str]",
    "words | WriteToCsv('out')": "PCollection[FileResult]",
    "words | WriteToParquet('out')": "PCollection[str]",
    "[1, 2] | beam.Map(str)": "Any",
}

_WRONG = {
    "words.nothing": 'has no attribute "nothing"',
    "TypedLengths().nothing": 'has no attribute "nothing"',
    "words | (lambda word: word)": "Unsupported operand",
    "pairs | Lengths()": "Unsupported operand",
    "p | beam.Create(1)": "No overload variant",
    "[word for word in words]": "no attribute .__iter__",
}


_LENIENT = [
    f"--disable-error-code={code}"
    # Libraries without types; empty lists; a doctest that knows which of several classes an object has.
    for code in ("import-untyped", "var-annotated", "union-attr")
]

_SETTINGS = """
[mypy]
[mypy-IPython.*,pyspark.pandas.*,sqlglot.*]
follow_imports = skip
"""
"""No program of a user's sees these, which penstock and PySpark import: a third of the time."""


def _checked(
    *files: Path, folder: Path, strict: bool = True, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    options = ["--strict"] if strict else ["--check-untyped-defs", *_LENIENT]
    settings = folder / "settings.ini"
    settings.write_text(_SETTINGS)
    command = [
        sys.executable,
        "-m",
        "mypy",
        *options,
        *("--config-file", str(settings)),
        *("--cache-dir", str(folder / "cache")),
        *map(str, files),
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd or folder, check=False)


def _as_written(shown: str) -> str:
    """A type in mypy's words as one would write it."""
    without_modules = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", shown)
    named = re.sub(r"tuple\[[^\[\]]*fallback=(\w+)\]", r"\1", without_modules)
    return re.sub(r"Literal\[\d+\]\?", "int", named)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("checked")


def test_a_type_checker_knows_what_each_transform_gives(folder) -> None:
    program = folder / "program.py"
    program.write_text(_BEGINNING + "".join(f"reveal_type({each})\n" for each in _TYPES))
    checked = _checked(program, folder=folder)
    found = re.findall(r'Revealed type is "(.*)"', checked.stdout)
    shown = [_as_written(each) for each in found]
    assert dict(zip(_TYPES, shown, strict=True)) == _TYPES, checked.stdout
    assert "error" not in checked.stdout, checked.stdout


def test_a_type_checker_finds_what_is_wrong_with_a_pipeline(folder) -> None:
    program = folder / "wrong.py"
    program.write_text(_BEGINNING + "".join(f"_ = {each}\n" for each in _WRONG))
    checked = _checked(program, folder=folder)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert len(errors) == len(_WRONG), checked.stdout
    for error, expected in zip(errors, _WRONG.values(), strict=True):
        assert re.search(expected, error), checked.stdout


def test_the_examples_are_well_typed(folder) -> None:
    examples = list((_ROOT / "examples").glob("**/*.py"))
    checked = _checked(*examples, folder=folder, strict=False, cwd=_ROOT / "examples")
    assert checked.returncode == 0, checked.stdout


def test_the_programs_of_the_documents_are_well_typed(folder) -> None:
    programs = {"readme": re.search(r"```python\n(.*?)```", (_ROOT / "README.md").read_text(), re.DOTALL)[1]}
    for page in sorted((_ROOT / "docs").glob("*.md")):
        for name, content in files_of_page(page.read_text()).items():
            (folder / name).write_text(content)
        examples = doctest.DocTestParser().get_examples(page.read_text())
        programs[page.stem] = "".join(each.source for each in examples if each.exc_msg is None)
    for name, program in programs.items():
        # A name for what nobody needs may stand for things of several types.
        (folder / f"{name}.py").write_text(re.sub(r"^(\s*)_ = ", r"\1", program, flags=re.MULTILINE))
    files = [folder / f"{name}.py" for name in programs]
    checked = _checked(*files, folder=folder, strict=False)
    assert len(files) > 10
    assert checked.returncode == 0, checked.stdout


def test_the_wheel_says_that_its_packages_are_typed() -> None:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert len(packages) == 5
    for package in packages:
        assert (_ROOT / package / "py.typed").read_text() == ""
