"""The forms of everything that a run writes and a later run reads, each with its number.

A number rises when something is written in another way, or means something else. What has another number is refused by
name, unless this version reads it too.

===============  ==========================================================================================
``PLAN``         ``plan-7.json``, in a checkpoint
``CLAIM``        ``holders/000012.json``; the names of the empty files beside it say that its run lives, or has stopped
``COMMAND``      a line of a file in ``control``
``REQUEST``      a command in ``holders``, and the answer beside it
``END``          ``ended.json``
``RUN``          ``runs/000012.json``, the record of a run; one with another number is left out
``ERAS``         ``eras.json`` beside Spark's file about a source that counts seconds
``STAGED``       ``inputs-1/.../_complete``, for all pages beside it
``POSITION``     a position of a source in Python, in Spark's log of offsets
``OWNER``        ``owner.json`` in a temporary folder of files that are being written
``HEADER``       in Spark's store of state: a page of each shard, with the messages that wait
``KEY_PAGE``     likewise: a page with keys, one by one
``COLUMN_PAGE``  likewise: a page with windows
``SEGMENT``      likewise: values of a long list
``WAITING_PAGE`` likewise: elements that wait for side inputs, or contents of side inputs
===============  ==========================================================================================

What sinks leave in other systems, so that they write a micro-batch once, are names and numbers alone: the transactions
of Delta, Iceberg and Kafka, a row of a database, an empty file in a folder that Spark has written. The logs of Spark
have numbers of Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

import penstock
from penstock.error import refusal


@dataclass(frozen=True)
class WrittenFormat:
    name: str  # What it is the form of, for people.
    number: int

    def check(self, found: object, where: str | None = None, writer: str | None = None) -> None:
        """Refuses what has another number; `writer` is the version of penstock that wrote it, if that is known.

        >>> WrittenFormat("the plan of a checkpoint", 2).check(3)
        Traceback (most recent call last):
        ValueError: a newer penstock wrote the plan of a checkpoint, in the format 3; penstock ... reads the format 2
          at ...
          hint: continue with the newer penstock
        """
        if found == self.number and type(found) is int:
            return
        reads = f"penstock {penstock.__version__} reads the format {self.number}"
        if type(found) is not int:
            what = f"no format number is stored with {self.name}; {reads}"
            hint = "restore what was there, or start again in another folder"
        elif found > self.number:
            by = "a newer penstock" if writer is None else f"penstock {writer}"
            what = f"{by} wrote {self.name}, in the format {found}; {reads}"
            hint = "continue with the newer penstock"
        else:
            by = "an older penstock" if writer is None else f"penstock {writer}"
            what = f"{by} wrote {self.name}, in the format {found}; {reads}"
            hint = "continue with the penstock that wrote it, or start again in another folder"
        raise refusal(ValueError, what, where=where, hint=hint)


PLAN = WrittenFormat("the plan of a checkpoint", 1)
CLAIM = WrittenFormat("the claim of the run that holds a checkpoint", 1)
COMMAND = WrittenFormat("a command to a run", 1)
REQUEST = WrittenFormat("a command to a run from outside", 1)
END = WrittenFormat("the note that a run has ended", 1)
RUN = WrittenFormat("the record of a run", 1)
ERAS = WrittenFormat("the times of a source that counts seconds", 1)
STAGED = WrittenFormat("the staged elements of a bounded source", 1)
POSITION = WrittenFormat("the position of a source", 1)
OWNER = WrittenFormat("the mark of a temporary folder", 1)
HEADER = WrittenFormat("what a shard remembers", 6)
KEY_PAGE = WrittenFormat("a page of keys", 7)
COLUMN_PAGE = WrittenFormat("a page of windows", 5)
SEGMENT = WrittenFormat("a part of a long list", 1)
WAITING_PAGE = WrittenFormat("a page of elements that wait", 3)

FORMATS = (
    *(PLAN, CLAIM, COMMAND, REQUEST, END, RUN, ERAS, STAGED, POSITION, OWNER),
    *(HEADER, KEY_PAGE, COLUMN_PAGE, SEGMENT, WAITING_PAGE),
)
