"""bench.contenders - the child processes: Onefold, its peers, and the bare disk.

For: `python -m bench.contenders.NAME FOLDER`, answering lines until the pipe closes.
Never: measures anything else at the same time; keeps state outside its folder.
"""
