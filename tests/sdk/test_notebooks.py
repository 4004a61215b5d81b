"""What a user of a notebook sees of an error: the cell by its number, and no traceback on demand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock import notebooks

LABEL_TWICE = """import penstock as beam
pipeline = beam.Pipeline()
one = pipeline | beam.Create([1])
two = pipeline | beam.Create([2])"""


@pytest.fixture
def shell() -> Iterator[Any]:
    shells = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    settings = pytest.importorskip("traitlets.config").Config()
    settings.HistoryManager.enabled = False
    yield shells.instance(config=settings)
    shells.clear_instance()


def test_an_error_names_the_cell_and_its_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%load_ext penstock", store_history=True)
    shell.run_cell(LABEL_TWICE, store_history=True)
    assert "\n  at cell In[2], line 4; the first one is at cell In[2], line 3\n" in capsys.readouterr().err


FUNCTION = """import penstock as beam
class Own(beam.PTransform):
    def expand(self, pcoll):
        return pcoll | beam.Map(int("x"))
beam.Pipeline() | beam.Create([1]) | Own()"""


def test_a_shell_shows_the_lines_of_cells_alone(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    notebooks.shorten_errors_here()
    shell.run_cell(FUNCTION, store_history=True)
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert "Own.expand" in text
    assert "invalid literal for int()" in text
    assert "penstock/construction" not in text


def test_a_handler_of_errors_that_is_there_stays(shell: Any) -> None:
    def own(*_: object, **__: object) -> None: ...

    shell.set_custom_exc((ValueError,), own)
    notebooks.shorten_errors_here()
    assert shell.custom_exceptions == (ValueError,)
