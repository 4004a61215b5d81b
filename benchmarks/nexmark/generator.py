"""The events of the auction house, made up: the same at every call, and of any number.

Of 50 events one is a person, three are auctions and 46 are bids, as in Nexmark's own generator, whose popular sellers,
auctions and bidders are kept as well: three sellers in four, one bid in two, and three bidders in four are taken from
the few newest ones of a round number. An auction lasts as long as about 100 of them are open, so that some bids come
before it or after it, and do not count.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from nexmark.model import END, Auction, Bid, Event, Person

FIRST_MILLIS = 1_600_000_000_000
EVENTS_PER_SECOND = 1_000
DISORDER_MILLIS = 2_000
"""The largest distance of an event behind the latest event."""

FIRST_ID = 1_000
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CATEGORIES = range(10, 15)

_SEED = 11
_ROUND, _AUCTIONS = 50, 3
_DELAYED_PART = 0.1
_OPEN_AUCTIONS, _ACTIVE_PERSONS = 100, 1_000
_AUCTION_LEAD, _PERSON_LEAD = 10, 10
"""The numbers of auctions and persons that events mention before they are known."""
_POPULAR_BIDS, _POPULAR_OTHERS, _POPULAR_STEP = 0.5, 0.75, 100
_CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Seattle", "Cheyenne")
_FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("apple", "google", "facebook", "baidu", "channel-17", "channel-4032")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def events(count: int, per_second: int = EVENTS_PER_SECOND) -> Iterator[Event]:
    """So many events, in the order in which they come; more of them begin with the same ones."""
    chance = random.Random(_SEED)
    filler = _text(chance, 4_000)
    for number in range(count):
        rounds, place = divmod(number, _ROUND)
        time = FIRST_MILLIS + number * 1_000 // per_second
        if chance.random() < _DELAYED_PART:
            time -= int(chance.random() * DISORDER_MILLIS)
        auctions = rounds * _AUCTIONS + min(place, _AUCTIONS)
        if place == 0:
            yield _person(chance, filler, time, rounds)
        elif place <= _AUCTIONS:
            yield _auction(chance, filler, time, auctions - 1, rounds, per_second)
        else:
            yield _bid(chance, filler, time, auctions - 1, rounds)


def last_events(millis: int) -> tuple[Person, Auction, Bid]:
    """One of each kind, all at one time; they belong to no person, and are not part of what queries ask for."""
    return (
        Person(millis, END, "", "", "", "", "OR", ""),
        Auction(millis, END, "", "", 1, 1, millis, END, END, ""),
        Bid(millis, END, END, 1, "", "", ""),
    )


def _person(chance: random.Random, filler: str, time: int, newest: int) -> Person:
    name = f"{chance.choice(_FIRST_NAMES)} {chance.choice(_LAST_NAMES)}"
    email = f"{_text(chance, 7)}@{_text(chance, 5)}.com"
    card = " ".join(f"{chance.randrange(10_000):04}" for _ in range(4))
    city, state = chance.choice(_CITIES), chance.choice(STATES)
    return Person(time, FIRST_ID + newest, name, email, card, city, state, _part(chance, filler, 40))


def _auction(
    chance: random.Random, filler: str, time: int, newest: int, persons: int, per_second: int
) -> Auction:
    initial = _price(chance)
    # About the time until the other open auctions have been opened.
    length = 1 + int(chance.random() * 2_000 * _OPEN_AUCTIONS * _ROUND / _AUCTIONS / per_second)
    return Auction(
        time=time,
        id=FIRST_ID + newest,
        item=_text(chance, 10),
        description=_part(chance, filler, 100),
        initial_bid=initial,
        reserve=initial + _price(chance),
        expires=time + length,
        seller=_person_id(chance, persons),
        category=chance.choice(CATEGORIES),
        extra=_part(chance, filler, 200),
    )


def _bid(chance: random.Random, filler: str, time: int, newest: int, persons: int) -> Bid:
    if chance.random() < _POPULAR_BIDS:
        auction = newest // _POPULAR_STEP * _POPULAR_STEP
    else:
        auction = chance.randint(max(0, newest - _OPEN_AUCTIONS), newest + _AUCTION_LEAD)
    channel = chance.choice(_CHANNELS)
    return Bid(
        time=time,
        auction=FIRST_ID + auction,
        bidder=_person_id(chance, persons),
        price=_price(chance),
        channel=channel,
        url=f"https://auctions.example/{channel}/item.htm?query=1",
        extra=_part(chance, filler, 20),
    )


def _person_id(chance: random.Random, newest: int) -> int:
    if chance.random() < _POPULAR_OTHERS:
        return FIRST_ID + newest // _POPULAR_STEP * _POPULAR_STEP
    return FIRST_ID + chance.randint(max(0, newest - _ACTIVE_PERSONS), newest + _PERSON_LEAD)


def _price(chance: random.Random) -> int:
    """A price from a dollar to a million, each power of ten as likely as another."""
    return round(10 ** (2 + 6 * chance.random()))


def _text(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(_LETTERS, k=length))


def _part(chance: random.Random, filler: str, length: int) -> str:
    start = chance.randrange(len(filler) - length)
    return filler[start : start + length]
