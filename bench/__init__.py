"""bench - Onefold beside its peers and beside what the disk allows, in one interleaved run.

For: `python -m bench`, which measures the table of goals and writes bench/RESULTS.md.
Never: compares figures of two runs (the machine is never equally quiet twice: only ratios of one run
are goals); counts an answer that no fsync stood behind; keeps anything but the results.
Was wrong once: each contender measured to its end, one after the other. Whoever came while the disk
was busy lost, and the table said so for months.

    measures, answering    what a contender needs: samples, and lines that it answers (no other imports)
    contenders/            child processes: each answers `workload callers seconds`
    child, interleave      starting, stopping and asking them in turns
    standing, turns        sets of them: cells, programs, mail, with the counts that are read back
    sharing                processes and nodes on one Postgres: folds, routed turns, takeovers
    scenes, honesty        what is no rate: sleepers, waiters, starts, costs that must not grow; that answers are durable
    goals, goals_turns, results      what was to be reached, and the report; profiles: where the time of what falls short goes
    wrk, postgres, places  the HTTP client, the server of the peers, and where all of it lies
    scale/                 a thousand nodes on paper and in a simulation: `python -m bench.scale`, docs/scale.md
"""
