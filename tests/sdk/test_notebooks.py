"""Notebooks without Spark: errors that name the cell and have no traceback, in Python and in SQL."""

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


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("", "SELECT teem FROM goals", "did you mean"),
        ("", "SELECT 1 AS n FROM gols", "did you mean 'goals'?"),
        (
            "",
            "SELECT 1 AS n FROM customers",
            "assign it in a cell before, such as customers = 'customers.csv'",
        ),
        ("", "SELEKT 1", "SELEKT"),
        pytest.param(
            "",
            "CREATE VIEW a AS SELECT 1 AS n; SELECT m FROM a",
            "line 2, column 40 of cell In[4]",
            marks=pytest.mark.spark,  # What penstock does not know, Spark may.
        ),
        ("--live_prt=0", "SELECT 1 AS n", "live_port"),
        ("totals", "CREATE VIEW a AS SELECT 1 AS n", "is not a single query"),
        ("a.b", "SELECT 1 AS n", "is not the name of a variable"),
    ],
)
def test_an_error_of_a_cell_shows_what_is_wrong_and_no_traceback(
    shell: Any, capsys: pytest.CaptureFixture[str], line: str, cell: str, said: str
) -> None:
    pytest.importorskip("sqlglot")
    shell.run_cell("%load_ext penstock", store_history=True)
    shell.run_cell("goals = [{'team': 'red', 'points': 3}]", store_history=True)
    capsys.readouterr()
    assert shell.run_cell(f"%%penstock_sql {line}\n{cell}", store_history=True).result is None
    out = capsys.readouterr()
    assert said in out.err
    assert "\n  hint: " in out.err
    assert "Traceback" not in out.out + out.err
    assert ".py" not in out.out + out.err


def test_a_notebook_that_has_no_sql_does_not_load_it(shell: Any) -> None:
    shell.run_cell("%load_ext penstock", store_history=True)
    assert shell.find_cell_magic("penstock_sql") is not None


def test_outside_of_a_notebook_the_page_is_refused_with_a_hint() -> None:
    with pytest.raises(RuntimeError, match="there is no notebook") as refused:
        notebooks.show(Ended())
    assert "--live_port=0" in str(refused.value)


class Ended:
    """The result of a run that is over."""

    is_over = True

    def page_html(self, height: int, name: str) -> str:
        return f"<p id={name}>{height}</p>"

    def snapshot(self) -> Any:
        return self

    def to_json(self) -> str:
        return "{}"


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
