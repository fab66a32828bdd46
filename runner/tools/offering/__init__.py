"""What of a tool's schema a model is told: the part of JSON Schema that every provider takes (D1, K3).

```
parameters ─▸ own (bounded, inert) ─▸ subset (all_of, alternatives, values, words, fields) ─▸ Offer
```
"""

from runner.tools.offering.fields import with_names
from runner.tools.offering.offer import Offer, Unofferable, offered_schema
from runner.tools.offering.seen import SEEN, SeenSchemas

__all__ = ["SEEN", "Offer", "SeenSchemas", "Unofferable", "offered_schema", "with_names"]
