"""The real border (K1): LangBot's own requesters between the runner and scripted providers that are as strict as the
real ones."""
