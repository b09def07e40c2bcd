"""ports - adapters to the world: how a notice reaches a person, a receipt its caller, a request another service.

For: `notify` and `alert` (console, and whoever they name), the ways `mail` and `webhook`; `callback`, where an ended run
is told; `http`, to the origins that an app lists (egress); `sandbox`, where files deployed by others run.
Imports: actuators and reflex, for their words and passes, kernel's Port, store's contract, terms.  Imported by: host,
which wires them, testing.
Never: reads a setting or a clock by itself; keeps what it sent; decides.
Was wrong once: one adapter that knew every service. Each new one changed it, and a fault in one chat's
API kept the mails from leaving.
"""
