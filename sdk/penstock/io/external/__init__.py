"""Transforms that Beam takes from its Java SDK, and that penstock has itself."""
