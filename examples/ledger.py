"""Keeps account balances in a database while transfers between the accounts arrive.

There are two tables: the balance of each account, and how many accounts owe something, own something, or are even. If
an account's standing changes, retractions remove it from the old count. A micro-batch writes a row once, however many
transfers concern it, and each table in one transaction, together with the micro-batch's number. So each transfer
counts once, and the sum of all balances is always 0. If you stop the program before it is done, start it again with
the same output folder, and it continues. Once all transfers are in the database, a further start says that the run
has ended.

python examples/ledger.py --output out/ledger
"""

from __future__ import annotations

import argparse
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import GlobalWindows

ACCOUNTS = ("amy", "ben", "cho", "dia", "eli", "fay")
TABLES = ("balances", "standings")


def deal_out(folder, files, count, seed=7):
    """Writes files of random transfers, each a second younger than the previous one."""
    random = Random(seed)
    folder.mkdir(parents=True)
    for number in range(files):
        lines = []
        for second in range(number * count, (number + 1) * count):
            giver, taker = random.sample(ACCOUNTS, 2)
            lines.append(f"{second},{giver},{taker},{random.randrange(1, 100)}\n")
        file = folder / f"{number:04d}.csv"
        file.write_text("".join(lines), encoding="utf-8")
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def second_of(line):
    """Returns the event time of a line.

    >>> second_of("17,amy,ben,5")
    17
    """
    return int(line.split(",")[0])


def entries(line):
    """Splits a transfer into its two entries.

    >>> list(entries("17,amy,ben,5"))
    [('amy', -5), ('ben', 5)]
    """
    _, giver, taker, amount = line.split(",")
    yield giver, -int(amount)
    yield taker, int(amount)


def standing(account, balance):
    """Classifies an account by its balance.

    >>> standing("amy", -5), standing("ben", 0)
    (('owes', 1), ('is even', 1))
    """
    return ("owes" if balance < 0 else "owns" if balance else "is even"), 1


def tables_of(lines):
    """Turns lines of transfers into the changes of the two tables."""
    at_once = beam.WindowInto(
        GlobalWindows(),
        Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
    )
    balances = lines | beam.FlatMap(entries) | at_once | "Balances" >> beam.CombinePerKey(sum)
    standings = balances | beam.MapTuple(standing) | "Standings" >> beam.CombinePerKey(sum)
    return balances | "BalanceRows" >> beam.Upserts(), standings | "StandingRows" >> beam.Upserts()


class Table:
    """A table of a database, with a row for each key.

    >>> table = Table(Path("ledger.db"), "balances")
    >>> table.name
    'balances'
    """

    def __init__(self, database, name):
        self.database = database
        self.name = name

    def write(self, upserts, batch_id):
        """Writes a micro-batch, unless it has been written already."""
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute(
                f"create table if not exists {self.name} (key text primary key, value integer)"
            )
            connection.execute("create table if not exists written (name text primary key, batch_id integer)")
            last = connection.execute("select batch_id from written where name = ?", (self.name,)).fetchone()
            if last is not None and batch_id <= last[0]:
                return
            for key, value, is_deleted in upserts:
                if is_deleted:
                    connection.execute(f"delete from {self.name} where key = ?", (key,))
                else:
                    connection.execute(f"insert or replace into {self.name} values (?, ?)", (key, value))
            connection.execute("insert or replace into written values (?, ?)", (self.name, batch_id))

    def rows(self):
        """Reads the table as a dictionary by key."""
        with closing(sqlite3.connect(self.database)) as connection:
            return dict(connection.execute(f"select key, value from {self.name}"))


def keep(pipeline, folder):
    """Reads the transfers of a folder, and updates the tables of ``ledger.db`` beside them."""
    transfers = beam.io.ReadFromText(f"{folder}/transfers/*.csv").as_stream(
        second_of, BoundedDisorder(0), existing_only=True, max_files_per_batch=1
    )
    for name, rows in zip(TABLES, tables_of(pipeline | transfers), strict=True):
        table = Table(folder / "ledger.db", name)
        _ = rows | f"Write {name}" >> beam.io.ForEachBatch(table.write)


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("out/ledger"), help="the folder of the database")
    parser.add_argument("--files", type=int, default=10, help="the number of files of transfers")
    parser.add_argument("--count", type=int, default=20, help="the number of transfers in each file")
    known, rest = parser.parse_known_args(argv)

    folder = known.output.resolve()
    if not (folder / "transfers").exists():
        deal_out(folder / "transfers", known.files, known.count)
    # The numbers of micro-batches belong to the checkpoint, so it lies beside the database.
    flags = ["--mode=streaming", f"--checkpoint_location={folder}/checkpoint", *rest]
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        keep(pipeline, folder)
    for name in TABLES:
        print(f"{name}:")
        for key, value in sorted(Table(folder / "ledger.db", name).rows().items()):
            print(f"  {key:<8}{value:>6}")


if __name__ == "__main__":
    run()
