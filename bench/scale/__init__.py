"""bench.scale - what a thousand nodes and a thousand million actors would cost, on paper and in a simulation.

For: `python -m bench.scale`, which prints the tables of docs/scale.md in some seconds, and `--measure`, which takes the
constants of the model anew from a Postgres of its own.
Never: claims a figure that nobody measured or wrote down as an assumption; opens a database without `--measure`.

    constants     what was measured, and what is assumed, each with its source
    rendezvous    who owns which slot: the highest score of node and slot
    worlds        the closed model: rates, limits, and which breaks first
    beats         the simulation: leases, looks, hand-over and takeover, in virtual time
    tables        the tables of the document
    measuring     the constants, from a real server
"""
