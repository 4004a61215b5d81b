"""The values that a pipeline is written with, under Beam's path (`apache_beam.pvalue`)."""

from penstock.absent import hint_at_absent_names
from penstock.construction.pvalue import AsDict as AsDict
from penstock.construction.pvalue import AsIter as AsIter
from penstock.construction.pvalue import AsList as AsList
from penstock.construction.pvalue import AsMultiMap as AsMultiMap
from penstock.construction.pvalue import AsSideInput as AsSideInput
from penstock.construction.pvalue import AsSingleton as AsSingleton
from penstock.construction.pvalue import DoOutputsTuple as DoOutputsTuple
from penstock.construction.pvalue import EmptySideInput as EmptySideInput
from penstock.construction.pvalue import PBegin as PBegin
from penstock.construction.pvalue import PCollection as PCollection
from penstock.construction.pvalue import PDone as PDone
from penstock.construction.pvalue import PValue as PValue
from penstock.construction.pvalue import T as T
from penstock.elements.row import Row as Row
from penstock.elements.tagged_output import TaggedOutput as TaggedOutput

hint_at_absent_names(globals())
