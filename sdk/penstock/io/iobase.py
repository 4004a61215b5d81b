"""The base classes of sources and sinks (Beam's ``apache_beam.io.iobase``)."""

from penstock.base.display import DisplayDataItem as DisplayDataItem
from penstock.base.display import HasDisplayData as HasDisplayData
from penstock.construction.ptransform import PTransform as PTransform
from penstock.construction.pvalue import AsIter as AsIter
from penstock.construction.pvalue import AsSingleton as AsSingleton
from penstock.functions.dofn import DoFn as DoFn
from penstock.io.custom.bounded import BoundedSource as BoundedSource
from penstock.io.custom.bounded import RangeTracker as RangeTracker
from penstock.io.custom.bounded import Read as Read
from penstock.io.custom.bounded import SDFBoundedSourceReader as SDFBoundedSourceReader
from penstock.io.custom.bounded import SourceBase as SourceBase
from penstock.io.custom.bounded import SourceBundle as SourceBundle
from penstock.io.custom.custom_sink import Sink as Sink
from penstock.io.custom.custom_sink import Write as Write
from penstock.io.custom.custom_sink import WriteImpl as WriteImpl
from penstock.io.custom.custom_sink import Writer as Writer
from penstock.io.custom.restrictions import RestrictionProgress as RestrictionProgress
from penstock.io.custom.restrictions import RestrictionTracker as RestrictionTracker
from penstock.io.custom.restrictions import WatermarkEstimator as WatermarkEstimator
from penstock.transforms.elements.create import Impulse as Impulse
from penstock.utils.windowed_value import WindowedValue as WindowedValue
