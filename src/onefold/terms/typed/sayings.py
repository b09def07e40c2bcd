"""terms.typed.sayings - what a reader found wrong, in plain words.

For: the middle of the sentence "amount: must be at most 500; sent 900".
Never: shows a library's own words where ours exist: who reads them wrote a JSON object, not a class.
Was wrong once: "Input should be a valid integer, unable to parse string as an integer". An agent sent it again.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from onefold.terms.faults import says

READ: Final = {  # msgspec: how its sentence starts, and how ours goes on
    "Expected `int` >= ": "must be at least ",
    "Expected `int` <= ": "must be at most ",
    "Expected `int` > ": "must be more than ",
    "Expected `int` < ": "must be less than ",
    "Expected `float` >= ": "must be at least ",
    "Expected `float` <= ": "must be at most ",
    "Expected `float` > ": "must be more than ",
    "Expected `float` < ": "must be less than ",
    "Expected `int` that's a multiple of ": "must be a multiple of ",
    "Expected `float` that's a multiple of ": "must be a multiple of ",
    "Expected `str` of length >= ": "must have at least {} characters",
    "Expected `str` of length <= ": "must have at most {} characters",
    "Expected `str` matching regex ": "must match the pattern ",
    "Expected `array` of length >= ": "must have at least {} items",
    "Expected `array` of length <= ": "must have at most {} items",
    "Expected `object` of length >= ": "must have at least {} entries",
    "Expected `object` of length <= ": "must have at most {} entries",
}
NUMBER, WHOLE, TEXT, OBJECT = "must be a number", "must be a whole number", "must be text", "must be an object"
INSTANT: Final = "must be an instant in RFC 3339 with its offset, like 2026-01-31T09:00:00Z"
MODEL: Final = {  # pydantic: the type of its error, and our words with what its context holds
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    "int_type": WHOLE,
    "int_parsing": WHOLE,
    "int_parsing_size": "must be a whole number within 64 bits",
    "int_from_float": WHOLE,
    "float_type": NUMBER,
    "float_parsing": NUMBER,
    "decimal_type": "must be a decimal number",
    "decimal_parsing": "must be a decimal number",
    "decimal_max_digits": "must have at most {max_digits} digits",
    "decimal_max_places": "must have at most {decimal_places} decimal places",
    "decimal_whole_digits": "must have at most {whole_digits} digits before the point",
    "string_type": TEXT,
    "string_sub_type": TEXT,
    "string_unicode": TEXT,
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "frozen_set_type": "must be a list",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "dict_type": OBJECT,
    "model_type": OBJECT,
    "model_attributes_type": OBJECT,
    "dataclass_type": OBJECT,
    "none_required": "must be null",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "datetime_type": INSTANT,
    "datetime_parsing": INSTANT,
    "datetime_from_date_parsing": INSTANT,
    "timezone_aware": INSTANT,
    "date_type": "must be a date, like 2026-01-31",
    "date_parsing": "must be a date, like 2026-01-31",
    "date_from_datetime_parsing": "must be a date, like 2026-01-31",
    "date_from_datetime_inexact": "must be a date, like 2026-01-31",
    "time_type": "must be a time of day, like 09:00:00",
    "time_parsing": "must be a time of day, like 09:00:00",
    "time_delta_type": "must be a duration in ISO 8601, like PT30S",
    "time_delta_parsing": "must be a duration in ISO 8601, like PT30S",
    "uuid_type": "must be a UUID",
    "uuid_parsing": "must be a UUID",
    "union_tag_invalid": "must have a {discriminator} of {expected_tags}",
    "union_tag_not_found": "must have a {discriminator}",
    "url_type": "must be a URL",
    "url_parsing": "must be a URL",
    "url_scheme": "must be a URL that begins with {expected_schemes}",
}


def say(fault: Exception, must: str) -> str:
    """What msgspec or a class of the program raised, as the rest of a sentence."""
    told = says(fault).strip()
    if not isinstance(fault, msgspec.ValidationError):
        return f"{told[:1].lower()}{told[1:].rstrip('.')}" if told else f"was refused ({type(fault).__name__})"
    told = told.split(" - at `")[0]
    for start, problem in READ.items():
        if told.startswith(start):
            limit = told[len(start) :].strip("`'").removesuffix(".0")
            return problem.format(limit) if "{}" in problem else problem + limit
    return f"must be {must}"


def problem_of(error: Any) -> str:
    """What pydantic found, as the rest of a sentence."""
    context = {key: f"{v:g}" if isinstance(v, float) else v for key, v in error.get("ctx", {}).items()}
    if error["type"] in ("value_error", "assertion_error"):
        told = str(context.get("error", "")).strip().rstrip(".")
        return f"{told[:1].lower()}{told[1:]}" if told else "was refused"
    try:
        return MODEL[error["type"]].format_map(context)
    except KeyError:
        told = str(error["msg"]).rstrip(".").replace("Input should be", "must be")
        return f"{told[:1].lower()}{told[1:]}"
