"""Q5: small models. Reading calls out of text, a simulated weak model, and real ones, on tasks with real tools."""
