"""Spark properties, as the command line and a file give them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.options.pipeline_options import PipelineOptions, SparkOptions
from penstock.options.spark_properties import parse_spark_properties


def test_properties_of_a_file_are_taken_and_those_of_the_command_line_win(tmp_path: Path) -> None:
    file = tmp_path / "keys.conf"
    file.write_text("spark.a.password  s=1 2\nspark.b=file\n")
    flags = [f"--spark_conf_file={file}", "--spark_conf=spark.b=flag", "--spark_conf=spark.c=3"]
    options = PipelineOptions(flags).view_as(SparkOptions)
    assert options.properties() == {"spark.a.password": "s=1 2", "spark.b": "flag", "spark.c": "3"}


def test_a_file_that_others_can_read_is_reported_and_one_that_is_missing_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.conf"
    file.write_text("spark.a=1\n")
    options = PipelineOptions(spark_conf_file=str(file)).view_as(SparkOptions)
    for mode, reported in ((0o600, []), (0o644, [logging.WARNING])):
        file.chmod(mode)
        assert options.properties() == {"spark.a": "1"}
        assert [record.levelno for record in caplog.records] == reported
    missing = PipelineOptions(spark_conf_file=str(tmp_path / "none")).view_as(SparkOptions)
    with pytest.raises(ValueError, match="none cannot be read: No such file"):
        missing.properties()
    assert any("cannot be read" in error for error in missing.validate())


@pytest.mark.parametrize("text", ["spark.a.password:hunter2", "spark.a.password hunter2", "=hunter2"])
def test_a_property_that_is_none_is_refused_without_its_value(text: str) -> None:
    with pytest.raises(ValueError, match="is not key=value") as caught:
        parse_spark_properties([text])
    assert "hunter2" not in str(caught.value)
