"""What the document promises holds for requests nobody thought of, sound ones and broken ones.

The generator is loaded by the test that needs it: it takes three seconds, which no other run should pay.
"""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from onefold.host.settings import Key
from onefold.serve import asgi_app
from tests.serve.conftest import OPERATOR_KEY
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import Config

EVERYTHING = Key("KEY", frozenset({"call", "read", "operate"}))
BEARER = {"Authorization": f"Bearer {OPERATOR_KEY}"}


def test_every_answer_is_one_the_document_names() -> None:
    import schemathesis
    from schemathesis import GenerationMode, checks

    held = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    host = FakeHost(Config(keys=(EVERYTHING,), environ={"KEY": OPERATOR_KEY}))
    front = asgi_app(host, allowed_hosts=("testserver",))
    schema = schemathesis.openapi.from_asgi("/openapi.json", front, headers=BEARER)
    found: Any = schema.get_all_operations()
    operations = [one.ok() for one in found]
    assert len(operations) > 20

    def hold(operation: Any, mode: GenerationMode) -> None:
        @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def answers(case: Any) -> None:
            case.validate_response(case.call(headers=BEARER), checks=held)

        answers()

    for operation in operations:
        hold(operation, GenerationMode.POSITIVE)
        if operation.body or operation.query:
            with contextlib.suppress(Unsatisfiable):  # where anything may be sent, nothing is broken
                hold(operation, GenerationMode.NEGATIVE)
