"""Transcripts: a damaged one is refused with its file and line, or is another transcript, and it can be played."""

from __future__ import annotations

from penstock_conformance.malformed import Malformed
from penstock_conformance.parsing import TRANSCRIPTS, parse
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, is_refusal, seeds

TEXTS = {path.name: path.read_text("utf-8") for path in sorted(TRANSCRIPTS.rglob("*.transcript"))}
WORDS = sorted({word for text in TEXTS.values() for word in text.split()})


@seeds(250, 50_000)
def test_a_damaged_transcript_is_refused_with_its_place_or_is_another_one(count: int) -> None:
    names = list(TEXTS)

    def law(chance: Chance) -> None:
        name = chance.one_of(names)
        start = chance.randint(0, max(len(TEXTS[name]) - 1500, 0))
        block = TEXTS[name].find("\n= ", start) + 1
        text = chance.damaged_text(TEXTS[name][block : block + 1500], WORDS)
        try:
            parse({name: text})
        except Malformed as error:
            refused = error
        else:
            return
        assert is_refusal(refused)
        assert refused.place is None or refused.place.startswith(name)

    each_seed(count, law)
