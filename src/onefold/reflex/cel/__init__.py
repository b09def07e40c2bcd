"""reflex.cel - the expressions at the leaves of a template: a part of CEL over JSON, with counted steps.

For: `compiled(text)`, whose `names` are checked at load and which runs over what it is given, and nothing else.
Imports: terms.  Imported by: reflex.templates.
Never: reads a clock, a file, a variable of the process; calls what it was not built with; runs without an end.
Was wrong once: a library written for policies. It was fast and right, and no two processes agreed on an order.
"""

from onefold.reflex.cel.reading import Misread
from onefold.reflex.cel.running import Compiled, compiled
from onefold.reflex.cel.values import FUEL, Meter, Spent, Unmet, as_json

__all__ = ["FUEL", "Compiled", "Meter", "Misread", "Spent", "Unmet", "as_json", "compiled"]
