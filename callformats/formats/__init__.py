"""One module per family of formats; each lists its own in `FORMATS`."""
