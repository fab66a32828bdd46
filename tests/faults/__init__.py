"""Every call to the Host × every way in which its answer can be wrong × every kind of run (Q4).

`python -m tests.faults` plays the whole matrix and prints how many runs there were; the suite plays a sample of it from
a printed seed. Waiting costs nothing: `tests/host/steered.py`.
"""
