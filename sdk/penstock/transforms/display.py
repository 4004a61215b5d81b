"""Display data: facts about transforms, under Beam's path (`apache_beam.transforms.display`)."""

from penstock.base.display import DisplayData, DisplayDataItem, HasDisplayData

__all__ = ["DisplayData", "DisplayDataItem", "HasDisplayData"]
