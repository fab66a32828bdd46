"""The port to LangBot: what is asked of it, what a run says, what can go wrong."""
