"""Simulated chats from a seed, with random faults, and what has to hold after every run whatever happened (Q4).

`python -m tests.soak --minutes 30 --seed 7` goes on for that long; `--chat SEED` plays one chat again.
"""
