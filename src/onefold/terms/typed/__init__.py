"""terms.typed - one JSON form for every type a person writes in a signature.

For: `codec_of(annotation)`, which writes a value as canonical bytes, reads it back, and says in
plain words what is wrong with what came.
Imports: terms.  Imported by: every room that stores or sends values.
Never: changes a value without saying so. What `encode` wrote, `decode` reads, or `encode` had refused it.
Was wrong once: pydantic for everything. A fold wrote and read four values, and spent its time in them.

The form: Decimal and UUID are text, bytes base64, instants RFC 3339 in UTC with `Z`, classes objects of
their fields. A value whose type is a union carries "type": "ClassName" if it is a class; so does a lone
class with `tagged`, as events and facts are. Unknown fields are refused.
"""

from onefold.terms.typed.codecs import Codec, codec_of
from onefold.terms.typed.node import UnknownKind

__all__ = ["Codec", "UnknownKind", "codec_of"]
