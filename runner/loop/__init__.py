"""The turns of one run: model, tools, follow-ups, and how a model is spoken to."""
