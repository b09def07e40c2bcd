"""ports - adapters to the world: how a notice reaches a person.

For: `notify` (console, and whoever the notice names), the ways `mail` and `webhook`.
Imports: kernel's Port, the words of actuators, terms.  Imported by: host, which wires them.
Never: reads a setting or a clock by itself; keeps what it sent; decides.
Was wrong once: one adapter that knew every service. Each new one changed it, and a fault in one chat's
API kept the mails from leaving.
"""
