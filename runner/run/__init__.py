"""One run from the context to its last event."""
