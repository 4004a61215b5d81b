"""The numbers that the queries have in common, whoever writes them; lengths of time are in seconds."""

from __future__ import annotations

EURO_PER_MILLE = 908
"""The euros for a thousand dollars."""

AUCTION_STEP = 123
STATES = ("OR", "ID", "CA")
CATEGORY = 10
WINDOW = 10
HOT_PERIOD = 2
WINNING_PERIOD = 5
LAST_AUCTIONS = 10
TOP_BIDS = 10
SESSION_GAP = 10

WATERMARK_DELAY = 3
"""The distance of watermarks behind the latest event: more than any event has."""

AUCTION_LENGTH_MAX = 4
"""The longest time for which an auction is open."""
