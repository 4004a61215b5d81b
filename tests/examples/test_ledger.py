"""The ledger: a database that is right, and stays so when the program is started again."""

from importlib import import_module

import pytest


def test_balances_come_to_nothing_and_stay_as_they_are_when_all_has_been_read(tmp_path, capfd):
    ledger = import_module("ledger")
    arguments = [f"--output={tmp_path}", "--files=3", "--count=10", "--shuffle_partitions=2"]
    ledger.run(arguments)
    first = [line.split() for line in capfd.readouterr().out.splitlines() if line[:2] == "  "]
    database = (tmp_path / "ledger.db").read_bytes()
    with pytest.raises(ValueError, match="has ended: DONE"):
        ledger.run(arguments)
    assert (tmp_path / "ledger.db").read_bytes() == database
    amounts = {words[0]: int(words[-1]) for words in first if words[0] in ledger.ACCOUNTS}
    assert len(amounts) == len(ledger.ACCOUNTS)
    assert sum(amounts.values()) == 0
    counts = [int(words[-1]) for words in first if words[0] not in ledger.ACCOUNTS]
    assert sum(counts) == len(ledger.ACCOUNTS)
