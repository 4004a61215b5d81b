"""Asks a service about every visitor of a log: many calls at a time, and again after an error.

The service answers ``GET /country?ip=192.0.2.7`` with the name of a country. A service on the network is slow and
sometimes busy, so 50 calls are under way at a time, none may take longer than five seconds, and a call that fails is
made again. An address that the service never answers for goes to a file of its own.

    python examples/enrich.py --service http://localhost:8080 --input visits.txt --output visits_with_countries

Spark repeats a task that fails, so the service may get a call more than once.
"""

from __future__ import annotations

import argparse
import asyncio
import urllib.request

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.utils.call_cache import CallCache


class AskCountry(beam.DoFn):
    """Adds the visitor's country to a line such as ``192.0.2.7 /index.html``."""

    def __init__(self, service):
        super().__init__()
        self.service = service
        # Visitors come back: each worker asks about an address once in ten minutes.
        self.countries = CallCache(max_entries=10_000, time_to_live_seconds=600)

    async def process(self, line):
        address = line.split()[0]
        country = await self.countries.get(address, self.ask)
        yield f"{country} {line}"

    async def ask(self, address):
        """The country of an address. `urllib` waits in a thread; an asynchronous HTTP client needs none."""
        return await asyncio.to_thread(fetch, f"{self.service}/country?ip={address}")


def fetch(url):
    """The text that a service answers with; an OSError if it does not."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode("utf-8")


def with_countries(lines, service):
    """Returns the lines with countries, and the lines for which the service found none."""
    ask = beam.ParDo(AskCountry(service)).with_concurrency(
        50, timeout_seconds=5, retries=4, retry_delay_seconds=0.05
    )
    return lines | "AskCountry" >> ask.with_exception_handling(main_tag="found", dead_letter_tag="lost")


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--service", required=True, help="where the service is, such as http://localhost:8080"
    )
    parser.add_argument("--input", required=True, help="the files of the log")
    parser.add_argument("--output", required=True, help="the beginning of the names of the outputs")
    known, rest = parser.parse_known_args(argv)
    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        lines = pipeline | beam.io.ReadFromText(known.input)
        outputs = with_countries(lines, known.service)
        outputs.found | "WriteFound" >> beam.io.WriteToText(known.output, ".txt")
        lost = outputs.lost | beam.MapTuple(lambda line, error: f"{line}\t{error[1]}")
        lost | "WriteLost" >> beam.io.WriteToText(f"{known.output}_lost", ".txt")


if __name__ == "__main__":
    run()
