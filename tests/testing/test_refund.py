"""The tests that the public API prints, as it prints them."""

from __future__ import annotations

from decimal import Decimal

from onefold.testing import Durable, every_crash
from tests.testing.refund import Declined, Refund, Refunded, pay_back, refund_order

BIG = Refund(order_id="8", bill_id="b8", amount=Decimal(150))


def test_nobody_decides(durable: Durable) -> None:
    app = durable(refund_order)
    receipt = app.start(refund_order, BIG)
    app.clock.advance("24 hours")
    assert receipt.result() == Declined(reason="nobody decided within a day")


def test_killed_anywhere_it_refunds_once() -> None:
    for app in every_crash(refund_order):
        app.stub(pay_back, returns="re_1")
        receipt = app.start(refund_order, BIG, key="k")
        app.approve(receipt, "manager", by="manager")
        assert app.call(refund_order, BIG, key="k") == Refunded(refund_id="re_1")
        assert len({call.key for call in app.calls(pay_back)}) == 1
