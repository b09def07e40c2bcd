#!/bin/sh
# Makes .venv with the releases that constraints.txt pins: `venv.sh run` what the package needs, `venv.sh dev`
# what its tests need too. make calls it only when pyproject.toml or constraints.txt changed.
set -eu
cd "$(dirname "$0")/.."

case "$1" in
run) what=. ;;
dev) what='.[dev]' ;;
*) echo "venv.sh: say run or dev" >&2; exit 2 ;;
esac

fits() { command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
    if fits "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "Onefold needs Python 3.11 or newer and found none. Install it, or name one: make PYTHON=/path/to/python3" >&2
    exit 1
fi

# A .venv whose interpreter is gone, or that was made without pip, is made anew.
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        # Some systems ship Python without the part that makes environments.
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
            rm -rf .venv
        fi
        "$python" -m venv .venv || {
            rm -rf .venv
            echo "$python cannot make an environment. Install its venv package (python3-venv), then run make again." >&2
            exit 1
        }
    fi
fi

echo "setting up .venv ($1) ..." >&2
# The variable reaches the build of the package itself, which a flag does not.
PIP_CONSTRAINT="$PWD/constraints.txt" .venv/bin/python -m pip install --quiet --disable-pip-version-check -e "$what"
