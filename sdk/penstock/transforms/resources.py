"""Resource hints, under Beam's path (`apache_beam.transforms.resources`)."""

from penstock.functions.resources import AcceleratorHint as AcceleratorHint
from penstock.functions.resources import CpuCountHint as CpuCountHint
from penstock.functions.resources import MaxActiveBundlesPerWorkerHint as MaxActiveBundlesPerWorkerHint
from penstock.functions.resources import MinRamHint as MinRamHint
from penstock.functions.resources import ResourceHint as ResourceHint
from penstock.functions.resources import merge_resource_hints as merge_resource_hints
from penstock.functions.resources import parse_resource_hints as parse_resource_hints
from penstock.functions.resources import resource_hints_from_options as resource_hints_from_options
from penstock.options.base import PipelineOptions as PipelineOptions
from penstock.options.standard import StandardOptions as StandardOptions
