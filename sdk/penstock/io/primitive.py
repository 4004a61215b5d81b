"""The two transforms that every source and sink description is applied by."""

from __future__ import annotations

from typing import Any

from penstock import graph
from penstock.pvalue import PCollection
from penstock.transforms.ptransform import PTransform


class SourceTransform(PTransform[Any, Any]):
    """A root of the pipeline that reads `source`.

    Args:
        source: What is read.
        label: The step's name; by default the class's name.
    """

    def __init__(self, source: graph.Source, label: str | None = None) -> None:
        super().__init__(label)
        self.source = source

    def expand(self, pbegin: Any) -> Any:
        """The new PCollection."""
        return PCollection(pbegin.pipeline, is_bounded=self.source.is_bounded)

    def to_primitive(self) -> graph.Read:
        """The source as the compiler sees it."""
        return graph.Read(self.source)


class SinkTransform(PTransform[Any, Any]):
    """A step that writes its input to `sink`; its output, in the global window, is what was written.

    Args:
        sink: Where the elements go.
        label: The step's name; by default the class's name.
    """

    def __init__(self, sink: graph.Sink, label: str | None = None) -> None:
        super().__init__(label)
        self.sink = sink

    def expand(self, pcoll: Any) -> Any:
        """The new PCollection."""
        self._check_pcollection(pcoll)
        return PCollection.from_(pcoll)

    def to_primitive(self) -> graph.Write:
        """The sink as the compiler sees it."""
        return graph.Write(self.sink)

    def get_windowing(self, inputs: Any) -> Any:
        """The global window: names of files belong to no window of the input."""
        from penstock.transforms.windowing import DEFAULT_WINDOWING

        return DEFAULT_WINDOWING()
