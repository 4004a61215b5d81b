"""An error about a table that a query reads and that does not exist has the name of the table in a field."""

from __future__ import annotations

import pickle

import pytest

import penstock as beam
from penstock.sql.errors import SqlError, call_text
from penstock.transforms.sql import SqlTransform


def test_a_missing_table_is_a_field_of_the_error() -> None:
    goals = beam.Pipeline() | beam.Create([beam.Row(team="red")])
    with pytest.raises(SqlError, match="there is no table 'gols'") as refused:
        _ = {"goals": goals} | SqlTransform("SELECT team FROM gols")
    for error in (
        refused.value,
        call_text(refused.value, "cell In[3]"),
        pickle.loads(pickle.dumps(refused.value)),
    ):
        assert error.missing_table == "gols"


@pytest.mark.usefixtures("spark")
def test_another_error_has_no_missing_table() -> None:
    goals = beam.Pipeline() | beam.Create([beam.Row(team="red")])
    with pytest.raises(SqlError) as refused:
        _ = {"goals": goals} | SqlTransform(
            "SELECT g.team FROM goals AS g WHERE gols.team = 'there is no table'"
        )
    assert refused.value.missing_table is None
