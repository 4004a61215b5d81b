"""What a type hint has to know of a pipeline's values: which of them have elements."""


class WithElements:
    """A base of `penstock.pvalue.PCollection`: the parameter of its hint is the hint of its elements."""


class WithoutElements:
    """A base of pipelines and of their begin and their end: a hint for them says nothing of elements."""
