"""What can go wrong while a LangBot is brought up, as one sentence a newcomer can act on."""

from __future__ import annotations

from weights.errors import StepFailed


class DemoError(StepFailed):
    """A step of the demo failed."""
