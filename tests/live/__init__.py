"""Tests of live views."""
