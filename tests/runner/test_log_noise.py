"""A program that logs everything does not see Py4J's messages."""

from __future__ import annotations

import logging

import pytest

from penstock_spark.session.classic import log_noise


@pytest.mark.parametrize(
    ("chosen", "is_logged"), [(logging.NOTSET, False), (logging.INFO, True)], ids=["usual", "asked for"]
)
def test_calls_from_java_are_not_logged_unless_a_program_asks_for_it(
    caplog: pytest.LogCaptureFixture, chosen: int, is_logged: bool
) -> None:
    py4j = logging.getLogger("py4j")
    before = py4j.level
    try:
        with caplog.at_level(logging.INFO):
            py4j.setLevel(chosen)
            log_noise._quiet_about_calls()
            logging.getLogger("py4j.clientserver").info("Received command c on object id p0")
            logging.getLogger("py4j.clientserver").warning("Connection is closed")
    finally:
        py4j.setLevel(before)
    said = [record.getMessage() for record in caplog.records]
    assert said == ["Received command c on object id p0"] * is_logged + ["Connection is closed"]
