"""Obeys the commands that other processes send to a run through its checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from penstock.utils import clock
from penstock_spark.checkpoints.custody.requests import (
    Answer,
    Request,
    answer_request,
    forget_requests,
    take_requests,
)
from penstock_spark.files.place import Place

_LOOK_SECONDS = 1.0
_LOGGER = logging.getLogger(__name__)

Obey = Callable[[Request], str]
"""Carries out a command, and returns what the run does now, as a clause; ValueError says why it does not."""


class OutsideCommands:
    """The commands to one run.

    Args:
        place: The checkpoint; None if no other process can know it.
        claim: The number of the run's claim.
        obey: What carries out each command, by its name.
    """

    def __init__(self, place: Place | None, claim: int, obey: Mapping[str, Obey]) -> None:
        self._place, self._claim, self._obey = place, claim, obey
        self._next_look = 0.0
        self._is_first = True

    def look(self) -> None:
        """Obeys what has arrived, and answers; looks at most once a second.

        A folder that cannot be read does not end a run: the sender gets no answer, and says so.
        """
        if self._place is None or (now := clock.monotonic_seconds()) < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        try:
            if self._is_first:
                forget_requests(self._place, self._claim)
                self._is_first = False
            for name, request in take_requests(self._place, self._claim):
                answer_request(self._place, name, self._answer(request))
        except Exception:
            _LOGGER.debug("cannot read the commands in %s", self._place.location, exc_info=True)

    def _answer(self, request: Request | Answer) -> Answer:
        if isinstance(request, Answer):
            return request
        _LOGGER.warning("the command %r of %s has arrived", request.command, request.sender)
        try:
            return Answer(True, self._obey[request.command](request))
        except Exception as error:
            return Answer(False, str(error))
