"""Beam's path for elements at regular times (`apache_beam.transforms.periodicsequence`)."""

from penstock.io.periodic_sequence import ImpulseSeqGenDoFn as ImpulseSeqGenDoFn
from penstock.io.periodic_sequence import ImpulseSeqGenRestrictionProvider as ImpulseSeqGenRestrictionProvider
from penstock.io.periodic_sequence import PeriodicImpulse as PeriodicImpulse
from penstock.io.periodic_sequence import PeriodicSequence as PeriodicSequence
from penstock.io.periodic_sequence import PeriodicSource as PeriodicSource
from penstock.io.periodic_sequence import RebaseMode as RebaseMode
from penstock.utils.timestamp import MAX_TIMESTAMP as MAX_TIMESTAMP
