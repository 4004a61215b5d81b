"""Resource hints have Beam's names and values, are checked where they are written, and a run says they do nothing."""

import logging

import pytest

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.resources import (
    AcceleratorHint,
    ResourceHint,
    merge_resource_hints,
    parse_resource_hints,
    resource_hints_from_options,
)

SPELLINGS = [
    "accelerator",
    "min_ram",
    "minRam",
    "cpu_count",
    "cpuCount",
    "max_active_bundles_per_worker",
    "max_active_bundle_per_worker",
    "MaxActiveBundlesPerWorker",
    "MaxActiveBundlePerWorker",
]


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("value", ["4", "6.5 GiB", "100MB", " 7 KiB ", ".5KB"])
def test_hints_are_kept_as_in_beam(name, value):
    theirs = pytest.importorskip("apache_beam.transforms.resources")
    if "min" not in name and not value.isdigit():
        value = "17"
    if "min" in name and value.isdigit():
        value = int(value)
    assert parse_resource_hints({name: value}) == theirs.parse_resource_hints({name: value})


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("min_ram", "3,500G", "such as '4 GiB'"),
        ("min_ram", "3500", "such as '4 GiB'"),
        ("min_ram", "3. GB", "such as '4 GiB'"),
        ("min_ram", "-3 GB", "such as '4 GiB'"),
        ("min_ram", None, "write a string"),
        ("min_ram", True, "write a string"),
        ("accelerator", 1, "write a string"),
        ("accelerator", "", "write a string"),
        ("cpu_count", 1, "write a string, such as '4'"),
        ("cpu_count", "many", "write an integer as a string"),
        ("speed", 1, "known are accelerator"),
    ],
)
def test_a_wrong_hint_is_refused_where_it_is_written(name, value, hint):
    with pytest.raises(ValueError, match=rf"(?s)esource hint:? {name}.*{hint}"):
        beam.Map(str).with_resource_hints(**{name: value})


def test_hints_of_one_kind_merge_as_the_kind_says():
    outer = parse_resource_hints(
        {"min_ram": "9KB", "cpu_count": "10", "max_active_bundles_per_worker": "3", "accelerator": "a"}
    )
    inner = parse_resource_hints(
        {"min_ram": "2KB", "cpu_count": "9", "max_active_bundles_per_worker": "4", "accelerator": "b"}
    )
    assert [*merge_resource_hints(outer, inner).values()] == [b"9000", b"10", b"7", b"b"]
    assert merge_resource_hints(outer, {}) == outer


def test_hints_of_options_are_pairs_or_a_dict():
    flags = PipelineOptions(["--resource_hint=min_ram=1KB", "--resource_hints=accelerator=type=a"])
    pairs = resource_hints_from_options(flags)
    by_name = PipelineOptions([], resource_hints={"min_ram": "1KB", "accelerator": "type=a"})
    assert (
        pairs
        == resource_hints_from_options(by_name)
        == parse_resource_hints({"min_ram": 1000}) | {str(AcceleratorHint.urn): b"type=a"}
    )
    assert resource_hints_from_options(None) == {}
    with pytest.raises(ValueError, match="Resource hint min_ram has invalid value"):
        beam.Pipeline(options=PipelineOptions(["--resource_hint=min_ram"]))


@pytest.mark.parametrize("kind", [str, ResourceHint, "a"])
def test_a_kind_of_hint_needs_a_class_with_a_name(kind):
    with pytest.raises(TypeError, match="the resource hint mine needs a class of hints with a urn"):
        ResourceHint.register_resource_hint("mine", kind)
    assert not ResourceHint.is_registered("mine")


def test_a_run_names_the_steps_whose_hints_have_no_effect(caplog):
    pipeline = beam.Pipeline()
    numbers = pipeline | "Numbers" >> beam.Create([1])
    _ = numbers | "Heavy" >> beam.Map(str).with_resource_hints(min_ram="1GB")
    with caplog.at_level(logging.WARNING):
        pipeline.explain()
    [record] = caplog.records
    assert "the resource hints of these steps have no effect: Heavy; set" in record.getMessage()
