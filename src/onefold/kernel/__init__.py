"""kernel - what an actor decides and what is kept of it: one event, one fold, one row. Pure.

For: modules and decisions (words, module, port); a fold as rows to commit (fold); state out of rows (rebuild, reading,
fork); what becomes of what is owed (drain), of wakes (alarm), of ids and replies (retain), of old facts (prune), of
bytes too large for a row (blob). Read words, module, fold, rebuild first.
Never: commits, waits, sends, reads a clock. What is decided here, node and host carry out.
"""
