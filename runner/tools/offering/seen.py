"""What was made of tools' schemas, kept in the worker, so that no run makes it again (L12)."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from runner.tools.offering.offer import Offer, Unofferable, offered_schema

MOST_CHARACTERS = 3_000_000
"""JSON text of all schemas kept; as objects they take about five times as much."""


class SeenSchemas:
    """Offers by the content of the schema they were made of, the ones used last. For all threads."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = self._room = most_characters
        self._offers: OrderedDict[bytes, tuple[int, Offer | Unofferable]] = OrderedDict()
        self._lock = threading.Lock()
        self.made = 0

    def offer(self, parameters: Mapping[str, Any] | None) -> Offer | Unofferable:
        """See `offered_schema`. `made` counts those that were not known."""
        try:
            text = json.dumps(parameters)
        except (ValueError, TypeError, RecursionError):
            return offered_schema(parameters)  # nothing that came as JSON, or nested beyond all bounds
        key = sha256(text.encode()).digest()
        with self._lock:
            if (known := self._offers.get(key)) is not None:
                self._offers.move_to_end(key)
                return known[1]
        offer = offered_schema(parameters)
        self._keep(key, len(text), offer)
        return offer

    def _keep(self, key: bytes, size: int, offer: Offer | Unofferable) -> None:
        with self._lock:
            self.made += 1
            if key in self._offers or size > self._most:
                return
            self._offers[key] = (size, offer)
            self._room -= size
            while self._room < 0:
                _, (freed, _) = self._offers.popitem(last=False)
                self._room += freed


SEEN = SeenSchemas()
"""The one of this process. It holds tools' schemas and nothing of a run (G4)."""
