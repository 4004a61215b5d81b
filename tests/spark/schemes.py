"""The schemes under which tests of files run: a disk, and one of Hadoop's other file systems."""

from __future__ import annotations

import pytest

FAR = "far://"
"""The scheme of a file system of Hadoop that shows the disk; penstock reaches it only through Java, as HDFS."""

SCHEMES = pytest.mark.parametrize("scheme", ["", FAR], ids=["disk", "far"])
