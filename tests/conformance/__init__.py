"""Tests of the transcripts and of the table of conformance."""
