"""Results of tools as the parts of this door hold them: the value a tool returned, not what a model sees of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from runner.tools.catalogue import Entry
from runner.tools.results import Rendered, Renderer, bounded_value

RESULT_CHARACTERS: Final = 20_000
"""Characters of a result, as JSON, beyond which a part holds its bounded text."""

VALUE: Final = "value"
"""Under this key an event carries the value, whatever it is."""


class Outcomes(Renderer):
    """Renders for the model as `Renderer` does, and keeps the value itself for the parts."""

    def __init__(self) -> None:
        super().__init__(RESULT_CHARACTERS)

    def render(self, entry: Entry, value: object) -> Rendered:
        rendered = super().render(entry, value)
        if rendered.error:
            return rendered
        shown, _ = bounded_value(value, rendered.body, RESULT_CHARACTERS)
        return replace(rendered, event_payload={VALUE: shown})
