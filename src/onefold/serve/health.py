"""serve.health - is it up, is it ready, how much was asked of it.

For: /healthz, /readyz, /metrics.
Never: a name of a principal, a key or a run in a metric; work that a probe every second would feel.
Was wrong once: health that asked the store. A slow disk then had the process killed in the middle of
the very commit it was waiting for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from onefold.serve.door import Host
from onefold.serve.routes import Answer, Ask, Route, answer

LOOK = frozenset({"read", "operate"})


class Health:
    """The routes of whoever watches the process."""

    def __init__(self, host: Host, counts: Counter[tuple[str, int]]) -> None:
        self.host = host
        self._counts = counts

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/healthz", self.alive, None),
            Route("GET", "/readyz", self.ready, None),
            Route("GET", "/metrics", self.metrics, LOOK),
        ]

    async def alive(self, ask: Ask) -> Answer:
        return answer({"ok": True})

    async def ready(self, ask: Ask) -> Answer:
        state = dict(await self.host.ready())
        return answer(state, 200 if state["ready"] else 503)

    async def metrics(self, ask: Ask) -> Answer:
        """In the text form of Prometheus: answers by route and status, and what /readyz says as gauges."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected(self._counts, dict(await self.host.ready())))
        body = generate_latest(registry)
        return Answer(200, body, ((b"content-type", CONTENT_TYPE_LATEST.encode()), (b"cache-control", b"no-store")))


class _Collected:
    """One scrape's figures."""

    def __init__(self, counts: Counter[tuple[str, int]], state: dict[str, Any]) -> None:
        self._counts = counts
        self._state = state

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        answers = CounterMetricFamily(
            "onefold_answers", "Answers given, by route and status.", labels=["route", "status"]
        )
        for (route, status), count in sorted(self._counts.items()):
            answers.add_metric([route, str(status)], count)
        yield answers
        for name, help in (
            ("oldest_overdue_seconds", "How late the oldest due item is."),
            ("parked", "Items that wait for a person."),
        ):
            yield GaugeMetricFamily(f"onefold_{name}", help, value=float(self._state.get(name) or 0))
        yield GaugeMetricFamily("onefold_ready", "1 when new work is taken.", value=float(bool(self._state["ready"])))
