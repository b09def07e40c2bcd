"""node - actors kept in memory in one process, and their turns, many to a commit.

For: who is resident (node, resident, waking); the turns of a space (lane, batch, arming); what a fleet must find
unchanged in a commit (owning); what is taken away in time (sweeping, blobs, blob_sweep). Read resident, lane, node first.
Never: holds the truth, which is in the rows; sends; decides who owns an actor (fleet does).
"""
