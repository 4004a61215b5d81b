"""The numbers that the queries have in common, whoever writes them; lengths of time are in seconds."""

from __future__ import annotations

EURO_PER_MILLE = 908
"""What a thousand dollars are in euros."""

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
"""How far watermarks stay behind the latest event: more than any event does."""

AUCTION_LENGTH_MAX = 4
"""How long an auction is open at most."""
