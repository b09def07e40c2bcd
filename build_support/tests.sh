#!/bin/sh
# All tests but those that need root, in two runs side by side: what waits for leases, kills and commands of other
# processes leaves a core free for the rest. The second run's report follows the first's. Ends 0 when both did.
set -u
python=.venv/bin/python
apart="tests/cli tests/example tests/fleet"
log=$(mktemp)
# shellcheck disable=SC2086  # a list of folders
$python -m pytest -q -m "not needs_root" $apart >"$log" 2>&1 &
second=$!
trap 'kill "$second" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

here=0
# shellcheck disable=SC2046  # one word a folder
$python -m pytest -q -m "not needs_root" $(printf ' --ignore=%s' $apart) tests || here=$?
there=0
wait "$second" || there=$?
echo "--- beside them: $apart"
cat "$log"
[ "$here" -eq 0 ] && [ "$there" -eq 0 ]
