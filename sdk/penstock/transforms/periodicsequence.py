"""Elements at regular times, under Beam's path (`apache_beam.transforms.periodicsequence`)."""

from penstock.io.streaming.periodic_sequence import ImpulseSeqGenDoFn as ImpulseSeqGenDoFn
from penstock.io.streaming.periodic_sequence import (
    ImpulseSeqGenRestrictionProvider as ImpulseSeqGenRestrictionProvider,
)
from penstock.io.streaming.periodic_sequence import PeriodicImpulse as PeriodicImpulse
from penstock.io.streaming.periodic_sequence import PeriodicSequence as PeriodicSequence
from penstock.io.streaming.periodic_sequence import PeriodicSource as PeriodicSource
from penstock.io.streaming.periodic_sequence import RebaseMode as RebaseMode
from penstock.utils.timestamp import MAX_TIMESTAMP as MAX_TIMESTAMP
