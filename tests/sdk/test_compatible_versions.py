"""What differs for a pipeline that is to be compatible with an older Beam."""

import pytest

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.typehints import typehints


@pytest.mark.parametrize(
    ("version", "label"), [(None, "Named(abcdefghij...uvwxyz)"), ("2.67.0", "Named({})")]
)
def test_a_long_label_is_cut_unless_an_older_beam_is_to_be_compatible(version, label):
    @beam.ptransform_fn
    def Named(pcoll, text):
        return pcoll | beam.Map(str)

    text = "abcdefghijklmnopqrstuvwxyz"
    pipeline = beam.Pipeline(options=PipelineOptions(update_compatibility_version=version))
    _ = pipeline | beam.Create([1]) | Named(text)
    assert label.format(text) in pipeline.applied_labels


@pytest.mark.parametrize(("version", "known"), [(None, True), ("2.72.0", False)])
def test_the_type_of_dead_letters_is_known_unless_an_older_beam_is_to_be_compatible(version, known):
    pipeline = beam.Pipeline(options=PipelineOptions(update_compatibility_version=version))
    _, bad = pipeline | beam.Create([1]) | beam.Map(str).with_exception_handling()
    assert (bad.element_type != typehints.Any) == known
