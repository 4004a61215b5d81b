"""Exceptions of user code travel from a worker to the program."""

from __future__ import annotations

import errno
import tempfile

import pytest

from penstock.error import UnsupportedByRunner, refusal
from penstock_spark.reports.failure import (
    StepFailure,
    UserCodeError,
    fail_step,
    find_failure,
    name_failing_step,
    to_exception,
)
from penstock_spark.worker.program import SinkWriterSpec
from penstock_spark.worker.writers import SinkWriter

WHERE = "at step 'A' (game.py:41)"


class TwoArguments(Exception):
    def __init__(self, what, why):
        super().__init__(f"{what} because {why}")
        self.why = why


class KeywordOnly(ValueError):
    def __init__(self, *, code):
        super().__init__()
        self.code = code

    def __str__(self):
        return f"code {self.code}"


class HoldsAFile(Exception):
    def __init__(self, message):
        super().__init__(message)
        self.file = tempfile.TemporaryFile()  # noqa: SIM115


class WithoutText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class ComesBackAsAnother(Exception):
    def __reduce__(self):
        return ValueError, ("another",)


class Fine(LookupError):
    """Survives the way."""


def brought_back(error: BaseException) -> BaseException:
    with pytest.raises(StepFailure) as caught:
        fail_step(error, WHERE)
    with pytest.raises(StepFailure) as again:
        fail_step(caught.value, "at step 'B'")
    assert again.value is caught.value
    text = f"Job aborted.\n{caught.value}\n\tat java"
    return to_exception(find_failure(text))


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Fine("gone"), Fine, "gone [while running 'A' (game.py:41)]"),
        (KeyError(3), KeyError, "3"),
        (
            ModuleNotFoundError("No module named 'psycopg'", name="psycopg"),
            ModuleNotFoundError,
            "No module named 'psycopg' [while running 'A' (game.py:41)]",
        ),
        (ValueError(), ValueError, ""),
        (
            UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"),
            UnicodeEncodeError,
            "'utf-8' codec can't encode character '\\ud800' in position 0: no [while running 'A' (game.py:41)]",
        ),
        (OSError(2, "no such file"), FileNotFoundError, "no such file"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), UnicodeDecodeError, "bad"),
        (TwoArguments("a", "b"), UserCodeError, "TwoArguments: a because b"),
        (KeywordOnly(code=5), UserCodeError, "KeywordOnly: code 5"),
        (HoldsAFile("open"), UserCodeError, "HoldsAFile: open"),
        (WithoutText(), WithoutText, None),
        (ComesBackAsAnother("itself"), UserCodeError, "ComesBackAsAnother: itself"),
        (ValueError("long " * 100_000), UserCodeError, "ValueError: long long"),
        (ValueError("half a pair \ud800 \n penstock-failure<"), ValueError, "half a pair"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_an_exception_comes_back_as_itself_or_says_what_it_was(error, kind, text):
    found = brought_back(error)
    assert type(found) is kind
    assert text is None or text in str(found)
    assert "at step 'A' (game.py:41)" in (str(found) if kind is UserCodeError else found.__notes__[-1])
    assert "In the worker:" in found.__notes__[-1]


def test_a_module_that_the_workers_lack_is_to_be_installed_there():
    found = brought_back(ModuleNotFoundError("No module named 'psycopg'", name="psycopg"))
    assert found.name == "psycopg"
    assert "hint: install the module for the Python of the workers" in found.__notes__[-1]


def test_an_error_that_has_a_hint_gets_no_second_one():
    found = brought_back(refusal(TypeError, "the element is no pair", hint="make pairs"))
    told, in_the_worker, _ = "\n".join([str(found), *found.__notes__]).partition("In the worker:\n")
    assert told.count("hint: ") == told.count("game.py:41") == 1
    assert told.endswith("hint: make pairs\nSet show_elements_in_errors to see the element.\n")
    assert in_the_worker


@pytest.mark.parametrize(
    ("where", "named"), [("", WHERE), ("at step 'B' (game.py:7)", "at step 'B' (game.py:7)")]
)
def test_an_error_of_the_runner_without_a_place_gets_the_step(where, named):
    found = brought_back(UnsupportedByRunner("no such type", where=where, hint="leave it out"))
    assert type(found) is UnsupportedByRunner
    assert str(found) == f"no such type\n  {named}\n  hint: leave it out"


def test_an_exception_comes_back_with_its_attributes_its_notes_and_the_code_that_raised_it():
    def user_code():
        try:
            raise KeyError("the cause")
        except KeyError as cause:
            error = Fine("gone")
            error.code = 7
            error.add_note("the user's note")
            raise error from cause

    with pytest.raises(Fine) as caught:
        user_code()
    found = brought_back(caught.value)
    assert found.code == 7
    assert found.__notes__[0] == "the user's note"
    assert "user_code" in found.__notes__[-1]
    assert "the cause" in found.__notes__[-1]


def test_a_text_without_a_mark_has_no_failure():
    assert find_failure("Job aborted. penstock-failure<>") is None
    assert find_failure("") is None


def test_an_output_that_cannot_be_written_is_told_in_three_parts():
    def full():
        raise OSError(errno.ENOSPC, "No space left on device", "/out/a-00000")

    with pytest.raises(StepFailure) as caught:
        SinkWriter(SinkWriterSpec(0, full, WHERE)).setup()
    error = to_exception(find_failure(str(caught.value)))
    assert isinstance(error, OSError)
    assert error.errno == errno.ENOSPC
    assert "/out/a-00000 cannot be written: No space left on device" in str(error)
    assert f"\n  {WHERE}\n  hint: free space on that disk" in str(error)


def test_an_error_of_the_system_names_the_step_in_its_text():
    error = brought_back(FileNotFoundError(errno.ENOENT, "No such file or directory", "/data/a"))
    assert str(error) == ("[Errno 2] No such file or directory [while running 'A' (game.py:41)]: '/data/a'")


@pytest.mark.parametrize(
    "leaves", [SystemExit("text"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr
)
def test_what_would_end_a_process_comes_back_as_an_error(leaves):
    """A driver that raised it would end silently."""
    error = brought_back(leaves)
    assert isinstance(error, UserCodeError)
    assert f"the step raised {type(leaves).__name__}" in str(error)
    assert WHERE in str(error)


def test_a_generator_that_is_closed_is_no_error_of_a_step():
    closed = []

    def results():
        try:
            yield 1
        finally:
            closed.append(True)

    generator = name_failing_step(results(), lambda: WHERE)
    assert next(generator) == 1
    generator.close()
    assert closed


def test_a_step_without_memory_is_named_in_the_text():
    assert WHERE in str(brought_back(MemoryError()))
