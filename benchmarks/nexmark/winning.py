"""Which bid wins each auction: state and timers for each auction, as a pipeline of penstock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import penstock as beam
from nexmark.model import Auction, Bid
from penstock.coders import PickleCoder
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer
from penstock.utils.timestamp import Timestamp


class WinningBid(NamedTuple):
    """An auction that is over, and the bid that won it."""

    auction: int
    seller: int
    category: int
    expires: int
    bidder: int
    price: int
    time: int


def rank(bid: Bid) -> tuple[int, int, int]:
    """The rank of a bid, higher is better: the price, then the earlier one; a last number decides if both are equal."""
    return bid.price, -bid.time, -bid.bidder


class WinningBids(beam.PTransform):
    """A `WinningBid` for each auction that had one, when it is over; from all events."""

    def expand(self, events: Any) -> Any:
        return (
            events
            | "Auctions and bids"
            >> beam.Filter(lambda event: isinstance(event, Auction | Bid)).with_output_types(Auction | Bid)
            | "By auction" >> beam.Map(lambda event: (_auction_of(event), event))
            | "Close" >> beam.ParDo(CloseAuction()).with_output_types(WinningBid)
        )


class CloseAuction(beam.DoFn):
    """Keeps the best bid of an auction until it expires.

    A bid may come before its auction, because it was quicker. It waits, but not forever: once the watermark has
    passed its time, every auction that was open by then is known, and so it was for none.
    """

    AUCTION = ReadModifyWriteStateSpec("auction", PickleCoder())
    BEST = ReadModifyWriteStateSpec("best", PickleCoder())
    EARLY = BagStateSpec("early", PickleCoder())
    OVER = TimerSpec("over", TimeDomain.WATERMARK)
    IN_VAIN = TimerSpec("in_vain", TimeDomain.WATERMARK)

    def process(
        self,
        element: tuple[int, Auction | Bid],
        auction: Any = beam.DoFn.StateParam(AUCTION),
        best: Any = beam.DoFn.StateParam(BEST),
        early: Any = beam.DoFn.StateParam(EARLY),
        over: Any = beam.DoFn.TimerParam(OVER),
        in_vain: Any = beam.DoFn.TimerParam(IN_VAIN),
    ) -> None:
        event = element[1]
        known = auction.read()
        if isinstance(event, Auction):
            auction.write(event)
            over.set(at_millis(event.expires))
            bids = [bid for bid in early.read() if event.time <= bid.time <= event.expires]
            if bids:
                best.write(max(bids, key=rank))
            early.clear()
            in_vain.clear()
        elif known is None:
            early.add(event)
            in_vain.set(at_millis(event.time))
        elif known.time <= event.time <= known.expires:
            so_far = best.read()
            if so_far is None or rank(event) > rank(so_far):
                best.write(event)

    @on_timer(OVER)
    def close(
        self, auction: Any = beam.DoFn.StateParam(AUCTION), best: Any = beam.DoFn.StateParam(BEST)
    ) -> Iterator[WinningBid]:
        """Gives the winner, at the time at which the auction expired."""
        sold, bid = auction.read(), best.read()
        if bid is not None:
            yield WinningBid(
                sold.id, sold.seller, sold.category, sold.expires, bid.bidder, bid.price, bid.time
            )
        auction.clear()
        best.clear()

    @on_timer(IN_VAIN)
    def forget(self, early: Any = beam.DoFn.StateParam(EARLY)) -> None:
        early.clear()


def at_millis(time: int) -> Timestamp:
    """A time of the model as a timestamp."""
    return Timestamp(micros=time * 1_000)


def _auction_of(event: Auction | Bid) -> int:
    return event.id if isinstance(event, Auction) else event.auction
