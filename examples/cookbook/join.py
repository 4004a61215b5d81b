"""Joins two collections by key: e-mail addresses and telephone numbers of the same people."""

from __future__ import annotations

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

EMAILS = [("amy", "amy@example.com"), ("carl", "carl@example.com"), ("julia", "julia@example.com")]
PHONES = [("amy", "111-222-3333"), ("james", "222-333-4444"), ("amy", "333-444-5555")]


def contact(name, found):
    """Formats the line of a person in the address book; a person may be missing on either side."""
    emails, phones = sorted(found["emails"]), sorted(found["phones"])
    return f"{name}: {', '.join(emails + phones)}"


def address_book(emails, phones):
    """Gives a line for each person of either collection: a full outer join."""
    return {"emails": emails, "phones": phones} | beam.CoGroupByKey() | "Contact" >> beam.MapTuple(contact)


def with_both(emails, phones):
    """Gives (name, (e-mail, telephone)) for each pair of the same person: an inner join."""
    found = {"emails": emails, "phones": phones} | "Both" >> beam.CoGroupByKey()
    return found | "Pairs" >> beam.FlatMapTuple(pairs)


def pairs(name, found):
    """Pairs every e-mail address with every telephone number of a person."""
    return [(name, (email, phone)) for email in found["emails"] for phone in found["phones"]]


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        emails = pipeline | "Emails" >> beam.Create(EMAILS)
        phones = pipeline | "Phones" >> beam.Create(PHONES)
        address_book(emails, phones) | "PrintBook" >> beam.Map(print)
        with_both(emails, phones) | "PrintPairs" >> beam.Map(print)


if __name__ == "__main__":
    run()
