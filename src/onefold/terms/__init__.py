"""terms - the words everything else is written in: ids, instants, durations, JSON, types, errors, limits.

For: values and their one JSON form, whose fault an error is, and how much is too much.
Imports: nothing of Onefold.  Imported by: every room.
Never: reads a clock, chance, the environment, a file or the network.
Was wrong once: a codec in each room. The same event had two digests, and its repeat was a conflict.
"""
