"""Type hints: the types of a pipeline's elements, checked before anything runs (Beam's ``typehints``)."""

from penstock.typehints.column_types import decimal_of as decimal_of
from penstock.typehints.decorators import TypeCheckError as TypeCheckError
from penstock.typehints.decorators import WithTypeHints as WithTypeHints
from penstock.typehints.decorators import disable_type_annotations as disable_type_annotations
from penstock.typehints.decorators import no_annotations as no_annotations
from penstock.typehints.decorators import with_input_types as with_input_types
from penstock.typehints.decorators import with_output_types as with_output_types
from penstock.typehints.typehints import KV as KV
from penstock.typehints.typehints import Any as Any
from penstock.typehints.typehints import Collection as Collection
from penstock.typehints.typehints import Dict as Dict
from penstock.typehints.typehints import FrozenSet as FrozenSet
from penstock.typehints.typehints import Generator as Generator
from penstock.typehints.typehints import Iterable as Iterable
from penstock.typehints.typehints import Iterator as Iterator
from penstock.typehints.typehints import List as List
from penstock.typehints.typehints import Mapping as Mapping
from penstock.typehints.typehints import Optional as Optional
from penstock.typehints.typehints import Sequence as Sequence
from penstock.typehints.typehints import Set as Set
from penstock.typehints.typehints import Tuple as Tuple
from penstock.typehints.typehints import TypeVariable as TypeVariable
from penstock.typehints.typehints import Union as Union
from penstock.typehints.typehints import WindowedValue as WindowedValue
