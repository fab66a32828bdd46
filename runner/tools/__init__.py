"""Tools: what is on offer, what a call says, running a batch, and what the model sees of the results (D)."""

from runner.tools.compact import compact_schema, validate_args
from runner.tools.ranking import rank_tools

__all__ = ["compact_schema", "rank_tools", "validate_args"]
