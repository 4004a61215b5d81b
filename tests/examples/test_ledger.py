"""The ledger: a database that is right, and stays so when the program is started again."""

from importlib import import_module


def test_balances_come_to_nothing_and_stay_as_they_are_when_all_has_been_read(tmp_path, capfd):
    ledger = import_module("ledger")
    printed = []
    for _ in range(2):
        ledger.run([f"--output={tmp_path}", "--files=3", "--count=10", "--shuffle_partitions=2"])
        printed.append([line.split() for line in capfd.readouterr().out.splitlines() if line[:2] == "  "])
    first, again = printed
    assert first == again
    amounts = {words[0]: int(words[-1]) for words in first if words[0] in ledger.ACCOUNTS}
    assert len(amounts) == len(ledger.ACCOUNTS)
    assert sum(amounts.values()) == 0
    counts = [int(words[-1]) for words in first if words[0] not in ledger.ACCOUNTS]
    assert sum(counts) == len(ledger.ACCOUNTS)
