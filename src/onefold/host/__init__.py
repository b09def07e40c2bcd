"""host - the parts of an app wired together once, and every verb that a door can call.

For: settings and parts to a host that runs (config, catalog, opening, core); the only clock (clock, driver); the only
way out for what is owed (sender); the verbs, a file for each kind of thing; a process as a node (fleet, membership,
routing, postman). Read opening, core, host, driver first.
Never: an HTTP word (serve has those); a decision on facts (kernel and the rooms of programs have those); a global.
"""
