"""Values as bytes: coders, the registry that picks one by type, and the deterministic encoding of keys."""

from penstock.coders.coders import *  # noqa: F403
from penstock.coders.row_coder import RowCoder as RowCoder
from penstock.coders.typecoders import registry as registry
