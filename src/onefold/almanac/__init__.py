"""almanac - when: calendar rules, cron texts and time zones, as pure functions of an instant.

For: timers ask `next_instant(trigger, now, ends_at)`; automations make a rule of their clock clause and
     walk its keys. Instants are whole milliseconds (`terms.instant.Instant`).
Imports: terms.  Imported by: timers, reflex, cli, testing.
Never: reads a clock, the environment, or the host's zone files. Zone data is that of the pinned `tzdata`.
Was wrong once: instants as identities. A change of the zone data moves an instant; it must move no key.

    clock_rule(clause)          {"every": "month", "on": 31, "at": "03:00", "tz": "Europe/Vienna"} -> Calendar
                                {"at": "2026-09-14T09:00", "tz": ...} -> Once; {"cron": "0 9 * * 1-5", "tz": ...} -> Cron
    rule.next(after)            after an instant, or after a key -> Occurrence(key, at, edge) or None
    rule.latest(until)          the last one not later than an instant: its key is the watermark; START before any
    rule.plan(key)              where a key falls under the zone data of now
    occurrences(rule, since, until, limit)      in key order
    At(instant), Every(cron, tz)                the two triggers of a timer; `.next(after)` in ms, always later
    next_instant(trigger, now, ends_at)         strictly after now, none past ends_at
    rule_of(every), cron_rule(text, zone)          the rule behind a text
    zone(name), zone_names(), tz_version()      the pinned zones; the version belongs on what was planned

Rulings. An erased local time takes the first valid instant after the gap (edge "gap"), a repeated one its
first pass ("fold"). Month and year days clamp to the month's end; cron days do not. A cron text whose every
hour matches follows elapsed time: its second passes come too ("fold2"), with the offset in the key.
"""

from onefold.almanac.calendar import Calendar, Once
from onefold.almanac.clause import clock_rule
from onefold.almanac.cron import Cron, cron_rule
from onefold.almanac.occurrence import START, Key, Occurrence, Rule, occurrences
from onefold.almanac.triggers import At, Every, next_instant, rule_of
from onefold.almanac.zones import Edge, Zone, tz_version, zone, zone_names

__all__ = [
    "START",
    "At",
    "Calendar",
    "Cron",
    "Edge",
    "Every",
    "Key",
    "Occurrence",
    "Once",
    "Rule",
    "Zone",
    "clock_rule",
    "cron_rule",
    "next_instant",
    "occurrences",
    "rule_of",
    "tz_version",
    "zone",
    "zone_names",
]
