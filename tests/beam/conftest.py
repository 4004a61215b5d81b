"""Leaves out the files that need Apache Beam where it is not installed."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("apache_beam") else ["beam_*.py"]
