"""Transcripts on a cluster in both modes of streams: the workers know nothing of penstock or of the suite."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(("mode", "number"), [("streaming", 4), ("micro_batch", 2)])
def test_a_cluster_does_as_the_transcripts_say(outcomes: dict[str, Any], mode: str, number: int) -> None:
    assert outcomes["transcripts_in_both_modes"][mode] == [number, []]
