"""Tests of an installed wheel."""
