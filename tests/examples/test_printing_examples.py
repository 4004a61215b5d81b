"""What the examples that print from inside of a pipeline show on the terminal, and so the README's."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

PRINTED = {
    "expand_prefixes.py": ["('f', [1, 2])", "('fi', [1, 2])", "('fit', [2])", "('fix', [1])"],
    "attribution.py": [
        "imp=123 http://search.com?q=xyz \u2192 http://xyz.com/ \u2192 http://xyz.com/join-mailing-list",
        "imp=456 http://search.com?q=thing \u2192 http://xyz.com/thing \u2192 http://xyz.com/thing/add-to-cart"
        " \u2192 http://xyz.com/thing/purchase \u2192 http://xyz.com/thing/receipt",
    ],
    "cookbook/filters.py": [
        "Day(name='1 January', month=1, degrees=-3.5)",
        "Day(name='2 January', month=1, degrees=1.0)",
    ],
    "cookbook/distinct.py": [
        *("('ann', '/home')", "('ann', '/prices')", "('ben', '/home')"),
        *("('ann', ['/home', '/prices'])", "('ben', ['/home'])"),
    ],
    "cookbook/join.py": [
        "amy: amy@example.com, 111-222-3333, 333-444-5555",
        *("carl: carl@example.com", "james: 222-333-4444", "julia: julia@example.com"),
        "('amy', ('amy@example.com', '111-222-3333'))",
        "('amy', ('amy@example.com', '333-444-5555'))",
    ],
    "cookbook/side_inputs.py": ["('tea', 1875)", "('cup', 0)", "('pen', 0)", "('tea', 625)"],
    "cookbook/side_outputs.py": [
        *("short: a", "short: is", "short: a", "long: river", "long: patient", "long: clockmaker"),
        "letters: 26",
    ],
    "cookbook/batches.py": [
        *("-10.0", "10.0", "-5.0", "100.0"),
        "Reading(station='north', fahrenheit=14.0)",
        "Reading(station='west', fahrenheit=23.0)",
    ],
    "cookbook/custom_combiner.py": ["('north', (4.0, 1.632993161855452))", "('south', (5.0, 0.0))"],
    "cookbook/dead_letters.py": [
        *("('ann', 41)", "('mei', 7)", "failed: 2"),
        """failed: ('{"name": "ben"}', 'KeyError')""",
        "failed: ('not JSON at all', 'JSONDecodeError')",
    ],
}

RUN_ALL = """
import os, runpy, sys
quick = "--spark_conf=spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
files, sys.argv[1:] = sys.argv[1:], ["--master=local[1]", quick]
for file in files:
    if file.endswith("readme.py"):
        # It reads no flags, and runs in the session that is there.
        sys.argv[1:] = []
    sys.path[0] = os.path.dirname(file)
    runpy.run_path(file, run_name="__main__")
"""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_examples_and_the_readme_print_what_they_are_said_to(tmp_path):
    (program,), (printed,) = blocks("python"), blocks("text")
    readme = tmp_path / "readme.py"
    readme.write_text(program, encoding="utf-8")
    programs = [*(ROOT / "examples" / name for name in PRINTED), readme]
    # What a worker prints goes through Spark, and is all there only when the program has ended. There is one
    # worker, since two may print into each other's lines.
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, *map(str, programs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    expected = Counter(printed.splitlines()) + Counter(line for lines in PRINTED.values() for line in lines)
    assert done.returncode == 0, done.stdout
    assert Counter(done.stdout.splitlines()) == expected
