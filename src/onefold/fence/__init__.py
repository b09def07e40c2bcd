"""fence - reads what users write, and says what may not stand where it stands.

For: `check`: modules, charts, cells and actuators, found in source text; each finding with its line, its
rule, why, and what to write instead.
Imports: terms.  Imported by: host, reflex, cli.
Never: imports or runs a user's code; opens a file; reports what it cannot tell.
Was wrong once: a list of forbidden words. It found `time` in a variable's name and missed `from time import
time as t`; what a name means has to be worked out.

    units, binding, scopes      files parsed; every name with what is bound to it
    values, meaning, annotations, classes, functions, operators     what an expression may be
    places, walk, look          guarded functions, and all they reach
    names, bans, judging        names of libraries       waiting     await
    changes                     writes                   orders      sets
    outcomes                    suspension, Expired      keys        keys        charts      after, delay
    rules, allow                sentences; what a person decided to live with
"""

from onefold.fence.checking import check
from onefold.fence.rules import RULES, Rule
from onefold.fence.words import Finding, Source

__all__ = ["RULES", "Finding", "Rule", "Source", "check"]
