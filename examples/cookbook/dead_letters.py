"""Separates failed elements from the others: dead letters, with the reason, instead of a failed pipeline."""

from __future__ import annotations

import json

import penstock as beam
from penstock.metrics import Metrics
from penstock.options.pipeline_options import PipelineOptions

LINES = ['{"name": "ann", "age": 41}', '{"name": "ben"}', "not JSON at all", '{"name": "mei", "age": 7}']
FAILED = Metrics.counter("dead_letters", "failed")


def parse(line):
    """Parses (name, age) from a line of JSON."""
    person = json.loads(line)
    return person["name"], person["age"]


def reason(failure):
    """Gives the line that failed and the class of the error, and counts it."""
    line, (error_class, _message, _traceback) = failure
    FAILED.inc()
    return line, error_class.__name__


def parsed_and_failed(lines):
    """Gives two collections: the people, and the lines that do not describe one."""
    people, failures = lines | beam.Map(parse).with_exception_handling()
    return people, failures | "Reason" >> beam.Map(reason)


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        people, failures = parsed_and_failed(pipeline | beam.Create(LINES))
        people | "PrintPeople" >> beam.Map(print)
        failures | "PrintFailures" >> beam.Map(lambda failure: print("failed:", failure))

    for counter in pipeline.result.metrics().query()["counters"]:
        print(f"{counter.key.metric.name}: {counter.committed}")


if __name__ == "__main__":
    run()
