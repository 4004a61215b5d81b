"""Obeys the commands that other processes send to a run through its checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from penstock_spark.checkpoints.custody.lease import Lease
from penstock_spark.checkpoints.custody.requests import Answer, Request, answer_request, take_requests
from penstock_spark.files.place import Place

_LOGGER = logging.getLogger(__name__)

Obey = Callable[[Request], str]
"""Carries out a command, and returns what the run does now, as a clause; ValueError says why it does not."""


class OutsideCommands:
    """The commands to one run.

    Args:
        place: The checkpoint.
        lease: The run's claim, which sees them; None if no other process can know the checkpoint.
        obey: What carries out each command, by its name.
    """

    def __init__(self, place: Place, lease: Lease | None, obey: Mapping[str, Obey]) -> None:
        self._place, self._lease, self._obey = place, lease, obey
        self._seen: set[str] = set()

    def look(self) -> None:
        """Obeys what has arrived, and answers.

        A folder that cannot be written does not end a run: the sender gets no answer, and says so.
        """
        if self._lease is None or not self._lease.commands:
            return
        new = [each for each in self._lease.commands if each not in self._seen]
        self._seen.update(new)
        try:
            for name, request in take_requests(self._place, self._lease.number, new):
                answer_request(self._place, self._lease.number, name, self._answer(request))
        except Exception:
            _LOGGER.debug("cannot answer the commands in %s", self._place.location, exc_info=True)

    def _answer(self, request: Request | Answer) -> Answer:
        if isinstance(request, Answer):
            return request
        _LOGGER.warning("the command %r of %s has arrived", request.command, request.sender)
        try:
            return Answer(True, self._obey[request.command](request))
        except Exception as error:
            return Answer(False, str(error))
