"""Measurements: Q1 calls, Q2 cost inside the plugin, Q3 times through the real LangBot; `python -m bench --help`. Load: `bench.load`."""
