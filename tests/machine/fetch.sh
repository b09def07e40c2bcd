#!/bin/sh
# Puts what Onefold's charts are held to into .setup/charts: XState, the SCION and W3C charts of SCION's test
# framework, and the W3C charts with Python expressions that python-statemachine ships. Archives only, none of
# their dependencies; each is the one whose digest stands here.
set -eu
cd "$(dirname "$0")/../.."
to=.setup/charts
mkdir -p "$to"
python=$PWD/.venv/bin/python
npm=$PWD/.setup/bin/npm
[ -x "$npm" ] || npm=npm

get() {     # get FOLDER SHA256 ARCHIVE COMMAND...: unpack what COMMAND puts into the folder, unless it was
    folder=$1 digest=$2 archive=$3; shift 3
    [ -e "$to/$folder/.ready" ] && return 0
    rm -rf "$to/$folder" "$to/$archive"
    (cd "$to" && "$@" >/dev/null 2>"$archive.log") || { cat "$to/$archive.log" >&2; exit 1; }
    "$python" -c 'import hashlib, sys; sys.exit(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest() != sys.argv[2])' \
        "$to/$archive" "$digest" || { echo "$archive is not the archive whose digest stands in fetch.sh" >&2; exit 1; }
    mkdir "$to/$folder"
    tar -xzf "$to/$archive" -C "$to/$folder" --strip-components=1
    rm -f "$to/$archive" "$to/$archive.log"
    touch "$to/$folder/.ready"
}

get xstate 9dd7d05d6eecade4480f866e200d73f5f878dd2c0cdd8eaf70c7ce15d97a9253 xstate-5.33.3.tgz "$npm" pack --silent xstate@5.33.3
get scion b813071f5691c7a36bab65ba5ce5aae479933395177447a6609c110bc936622b scion-scxml-test-framework-2.0.16.tgz "$npm" pack --silent @scion-scxml/test-framework@2.0.16
get statemachine 5968c5e07a537f7531b8b1d0a0d5067a3452c88941fa0ac6c244870d48f78325 python_statemachine-3.2.2.tar.gz \
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    python-statemachine==3.2.2
