"""program - source text sent as a turn: read, run against a scope under limits, and its verdict.

For: one call that goes straight to its method, and anything more through an interpreter that can do nothing else.
Imports: terms.  Imported by: cell, host, testing.
Never: touches what it runs against by itself: a method of the scope does, on a draft that is thrown away on a stop.
Was wrong once: an interpreter for every body. Nine of ten turns are one call, and paid ten times for nothing.

    read(source, scope)         Stopped, or a Program: one call with literals, or its statements
    call(program, scope)        the one call, here and now
    Interpreter.run(...)        the statements, one after another, in a worker of their own
"""
