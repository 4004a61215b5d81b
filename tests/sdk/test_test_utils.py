"""The helpers of tests do what Beam's do."""

import os

import pytest

from penstock.testing import test_utils as ours


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [0, 1, 7, 2**40])
def test_numbers_and_hashes_are_those_of_beam(seed):
    theirs = pytest.importorskip("apache_beam.testing.test_utils")
    for method in ("seed", "seed_jdk"):
        pair = [module.LCGenerator() for module in (theirs, ours)]
        for generator in pair:
            getattr(generator, method)(seed)
        for draw in ("next_int", "next_uint", "random_sample", "next_int"):
            expected, found = (getattr(generator, draw)() for generator in pair)
            assert found == expected
        expected, found = (generator.randbytes(11) for generator in pair)
        assert found == expected
    content = ["b", 2, b"a", seed]
    assert ours.compute_hash(content) == theirs.compute_hash(content)
    assert ours.compute_hash(content, "md5") == theirs.compute_hash(content, "md5")


def test_files_of_a_temporary_folder_are_read_deleted_and_gone_at_the_end():
    with ours.TempDir() as folder:
        first = folder.create_temp_file(".txt", [b"a\n", b"b\n"])
        second = ours.create_file(os.path.join(folder.get_path(), "z.txt"), "c\n")
        assert sorted(ours.read_files_from_pattern(f"{folder.get_path()}/*.txt").split("\n")) == [
            "a",
            "b",
            "c",
        ]
        ours.delete_files([first])
        assert (os.path.exists(first), os.path.exists(second)) == (False, True)
    assert not os.path.exists(folder.get_path())
    with pytest.raises(RuntimeError, match="Clean up failed"):
        ours.delete_files([])
