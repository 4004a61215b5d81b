"""Classes that the functions of `inference_cases` make and ask."""

import dataclasses
import enum
import typing


class Person(typing.NamedTuple):
    name: str
    age: int


@dataclasses.dataclass
class Item:
    price: float
    tags: list[str]


class Odd:
    """Its comparisons, attributes and calls answer with anything."""

    def __new__(cls, *arguments):
        return "no instance"


class Colour(enum.Enum):
    RED = 1


class Doubler:
    def __call__(self, x):
        return x, x


class Parser:
    def __init__(self):
        self.handler = len

    def parse(self, text):
        return self.scale(len(text)), self.unit(), self.named("n")

    def scale(self, x):
        return x * 2

    def handler(self, x):
        return "never called"

    def uses_handler(self, x):
        return self.handler(x)

    @staticmethod
    def unit():
        return "cm"

    @classmethod
    def named(cls, name):
        return name
