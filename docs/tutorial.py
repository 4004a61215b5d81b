"""The program of penstock's tutorial, section by section: ``python tutorial.py``.

It works in a new folder, whose path it prints first. Beside each ``print`` is what it prints.
"""

import os
import tempfile

folder = tempfile.mkdtemp(prefix="tutorial-")
os.chdir(folder)
print(folder)

# 2. A first pipeline

import penstock as beam
from penstock.io import WriteToMemory
from penstock.transforms.window import FixedWindows, TimestampedValue

goals = [("blue", 3, 10), ("red", 5, 40), ("blue", 2, 50), ("blue", 4, 95)]
found = []
with beam.Pipeline() as pipeline:
    (
        pipeline
        | "Goals" >> beam.Create(goals)
        | "Points" >> beam.MapTuple(lambda team, points, second: (team, points))
        | "Total" >> beam.CombinePerKey(sum)
        | "Keep" >> WriteToMemory(found)
    )

print(sorted(found))
# [('blue', 9), ('red', 5)]


# 3. Windows of event time


def goals_by_minute(goals):
    return (
        goals
        | "Time" >> beam.MapTuple(lambda team, n, second: TimestampedValue((team, n), second))
        | "Minutes" >> beam.WindowInto(FixedWindows(60))
        | "Total" >> beam.CombinePerKey(sum)
    )


def line(total, window=beam.DoFn.WindowParam):
    team, points = total
    return f"from second {int(window.start)}: {team} has {points}"


with beam.Pipeline() as pipeline:
    totals = goals_by_minute(pipeline | beam.Create(goals))
    totals | "Line" >> beam.Map(line) | beam.io.WriteToText("totals", num_shards=1)

from pathlib import Path

print(*sorted(Path("totals-00000-of-00001").read_text().splitlines()), sep="\n")
# from second 0: blue has 5
# from second 0: red has 5
# from second 60: blue has 4


# 4. The same over files


def parse(line):
    team, points, second = line.split(",")
    return team, int(points), int(second)


Path("games").mkdir()
Path("games/monday.csv").write_text("blue,3,10\nred,5,40\nblue,2,50\nblue,4,95\n")
with beam.Pipeline() as pipeline:
    lines = pipeline | beam.io.ReadFromText("games/*.csv")
    totals = goals_by_minute(lines | beam.Map(parse))
    totals | "Line" >> beam.Map(line) | beam.io.WriteToText("totals", num_shards=1)

print(len(Path("totals-00000-of-00001").read_text().splitlines()))
# 3


# 5. The same over a folder that grows

from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions


def second_of(line):
    return parse(line)[2]


def start():
    options = PipelineOptions(mode="streaming", checkpoint_location="checkpoint", shuffle_partitions=2)
    pipeline = beam.Pipeline(options=options)
    lines = pipeline | beam.io.ReadFromText("games/*.csv").as_stream(second_of, BoundedDisorder(10))
    totals = goals_by_minute(lines | beam.Map(parse))
    totals | "Line" >> beam.Map(line) | beam.io.WriteToText("live/total")
    return pipeline.run()


result = start()
print(result.state)
# RUNNING


import time


def wait_for(lines):
    """Waits until the results have this number of lines."""
    for _ in range(600):
        found = [one for file in Path("live").glob("total*") for one in file.read_text().splitlines()]
        if len(found) >= lines:
            break
        time.sleep(0.1)
    return sorted(found, key=lambda one: (int(one.split()[2][:-1]), one))


print(*wait_for(2), sep="\n")
# from second 0: blue has 5
# from second 0: red has 5


def arrive(name, text):
    Path("new.csv").write_text(text)
    Path("new.csv").rename(f"games/{name}")


arrive("tuesday.csv", "red,1,100\nblue,7,130\n")
print(*wait_for(4), sep="\n")
# from second 0: blue has 5
# from second 0: red has 5
# from second 60: blue has 4
# from second 60: red has 1


# 6. Stop it, and continue

result.cancel()
print(result.state)
# CANCELLED

arrive("wednesday.csv", "blue,1,140\nred,2,200\n")

result = start()
print(wait_for(5)[-1])
# from second 120: blue has 8


# 7. End it

result.drain()
print(result.wait_until_finish())
# DRAINED

print(wait_for(6)[-1])
# from second 180: red has 2


# 8. Test it

from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import assert_that, equal_to

with TestPipeline(mode="streaming") as pipeline:
    stream = (
        TestStream()
        .add_elements([("blue", 3, 10)])
        .advance_watermark_to(60)
        .add_elements([("blue", 9, 20)])
        .advance_watermark_to_infinity()
    )
    totals = goals_by_minute(pipeline | stream)
    assert_that(totals, equal_to([("blue", 3)]))
