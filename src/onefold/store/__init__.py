"""store - databases behind one contract: verbs as data, bodies as generators, outcomes of a commit.

For: the contract, and what all backends share (rows, schema, batch, lane, statement); `memory`, the reference; `sqlite`
and `postgres`. Read contract and memory first; `testing.STORE_SUITE` says the rest as checks that run.
Never: knows what a row means; lets a body await; tells a driver's error to anybody as it came.
"""
