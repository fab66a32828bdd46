"""Which model the demo takes: DEMO_MODEL, or the one that serves best on a plain machine."""

from __future__ import annotations

from demo.errors import DemoError
from weights.catalogue import CATALOGUE, Gguf

DEFAULT = "1.5b"


def choose(key: str | None) -> Gguf:
    """The model that DEMO_MODEL names. Raises DemoError for a name that is not in the catalogue."""
    model = CATALOGUE.get((key or DEFAULT).strip().lower())
    if model is None:
        raise DemoError(f"DEMO_MODEL={key} is unknown; choose one of {', '.join(CATALOGUE)}")
    return model
