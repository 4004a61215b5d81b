"""Which files a stream watches: patterns of the user's as those of Hadoop's file systems."""

from __future__ import annotations

import pytest

from penstock.io.formats.text_source import TextSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import IngressTime
from penstock_spark.sources.stream_files import stream_files


@pytest.mark.parametrize(
    ("pattern", "glob", "depths"),
    [
        ("/logs/*.txt", "file:///logs/*.txt", (2,)),
        ("/logs/day=?/[!a-c]{1}*", r"file:///logs/day=?/[!a-c]\{1\}*", (3,)),
        ("/logs/../logs/a,b", r"file:///logs/{a\,b}", (2, 3)),
        ("/logs//", "file:///{logs}", (1, 2)),
        ("hdfs:///logs/a", "hdfs:///logs/{a}", (2, 3)),
        ("s3a://bucket/logs//*", "s3a://bucket/logs//*", (2,)),
        ("s3a://bucket/", "s3a://bucket/*", (1,)),
        ("s3a://bucket", "s3a://bucket/*", (1,)),
        ("/", "file:///*", (1,)),
        ("file:///", "file:///*", (1,)),
    ],
)
def test_a_pattern_is_a_glob_and_the_depth_of_what_it_means(
    pattern: str, glob: str, depths: tuple[int, ...]
) -> None:
    files = stream_files(StreamSource(TextSource(pattern), IngressTime()), pattern, "at step 'Read'")
    assert (files.glob, files.depths) == (glob, depths)
