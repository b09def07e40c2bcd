"""A slip in a declaration or a setting is told with its line or with what was perhaps meant."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

import onefold
from onefold import Module, Run, actuator, port, testing
from onefold.errors import LoadRefused
from onefold.host.config import settle
from onefold.machine import from_machine


class Order(BaseModel):
    id: str


async def ship(run: Run, order: Order) -> str:
    return ""


async def mail(run: Run, order: int) -> str:
    return ""


async def send(step: onefold.Step, body: str) -> None: ...


def bare_module() -> Any:
    decides: Any = lambda state, event, now: None  # noqa: E731 - it has no annotations
    return Module("stock", initial=0, key=str, decide=decides, evolve=decides, view=decides)


def test_the_package_lists_its_public_names() -> None:
    assert dir(onefold) == sorted(onefold.__all__)


def test_an_option_that_an_actuator_does_not_have_names_the_nearest_and_the_line() -> None:
    anything: Any = actuator
    with pytest.raises(
        LoadRefused, match=r"test_slips_are_told.py:\d+: @actuator: has no option 'dedupe'; .*'dedupe_by'"
    ):
        anything(dedupe=["id"])(ship)


def test_a_declaration_that_is_refused_says_where_it_stands() -> None:
    anything: Any = actuator
    with pytest.raises(LoadRefused, match=r"test_slips_are_told.py:\d+: actuator mail: parameter 'order' must be"):
        anything(mail)

    bare: Any = bare_module()
    with pytest.raises(LoadRefused, match=r"test_slips_are_told.py:\d+: module stock, decide: has no annotation"):
        bare.check()


def test_a_port_without_brackets_says_the_right_form() -> None:
    anything: Any = port.dedupes
    with pytest.raises(TypeError, match=r'@port.dedupes needs the name of the port: @port.dedupes\("send"\)'):
        anything(send)


def test_a_module_is_delivered_to_by_itself_and_not_by_name() -> None:
    anything: Any = "stock"
    with testing.open() as app, pytest.raises(TypeError, match="deliver takes the module itself, not 'stock'"):
        app.deliver(anything, Order(id="1"))


def test_a_table_of_settings_is_meant_rather_than_one_setting_in_it() -> None:
    with pytest.raises(LoadRefused, match="did you mean 'retention'"):
        settle(flags={"retension": 3})


def test_the_console_is_no_address_and_is_told_anyway_and_that_is_said_once() -> None:
    with pytest.raises(LoadRefused) as refused:
        settle(flags={"people.ops.notify": ["console"], "alerts": ["ops"]})
    [finding] = refused.value.findings
    assert finding.problem.endswith("the console is always told: give an address, or notify = [] for the console alone")
    assert settle(flags={"people.ops.notify": [], "alerts": ["ops"]}).people["ops"].notify == ()


def test_a_key_of_a_chart_that_is_no_text_hides_nothing_else() -> None:
    def which(event: Order) -> str:
        return event.id

    which.__annotations__ = {"event": Order, "return": str}
    chart: Any = {"initial": "a", "states": {"a": {"after": {1000: "nowhere"}, "on": {"Order": "away"}}}}
    with pytest.raises(LoadRefused) as refused:
        from_machine("bell", chart, context=0, key=which)
    told = str(refused.value)
    assert "has a key that is not text, 1000; write '1000'" in told
    assert len(refused.value.findings) > 1
