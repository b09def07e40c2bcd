"""A limit that nobody can explain is a limit that somebody will raise."""

from __future__ import annotations

import ast
import inspect

from onefold.terms import limits


def test_every_limit_says_why() -> None:
    body = ast.parse(inspect.getsource(limits)).body
    unsaid = [
        ast.unparse(node)
        for node, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(node, ast.Assign)
        and not (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and len(str(after.value.value)) > 40
        )
    ]
    assert unsaid == []


def test_what_one_limit_lets_in_the_next_can_hold() -> None:
    assert limits.MAX_KEY_BYTES <= limits.MAX_ID_BYTES
    assert limits.MAX_BODY_BYTES <= limits.MAX_ROW_BYTES
    assert limits.INLINE_BYTES <= limits.MAX_ROW_BYTES <= limits.MAX_BLOB_BYTES
    assert limits.BLOB_PART_BYTES <= limits.MAX_ROW_BYTES
    assert limits.BLOB_DELAY_MS <= limits.BLOB_GRACE_MS
    assert limits.QUEUE_PER_ACTOR <= limits.QUEUE_PER_SPACE
    assert limits.MAX_DURATION_MS < limits.MAX_INT
