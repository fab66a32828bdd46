"""Measurements: Q1 calls, Q2 cost inside the plugin, Q3 times through the real LangBot; `bench.load`: a crowd there."""
