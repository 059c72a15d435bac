#!/usr/bin/env bash
# Runs schemathesis against the real server: requests as openapi.json describes them, right and wrong, are answered as it
# says, and none with 5xx. It needs Python 3.10 with venv; schemathesis itself goes into the target folder.
#
#   tests/schemathesis.sh [OPTION...]    options of `schemathesis run`, such as `--seed 7 --max-examples 500`
set -euo pipefail

# The same requests each time, so that a change is judged by what it changed. Others: --seed N.
readonly SEED=1
# Requests for each operation beside the examples and the edges of each field.
readonly EXAMPLES=15
# Longest time for it all: it takes about a minute.
readonly SECONDS_MAX=600

readonly CHECKS=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "${CARGO_TARGET_DIR:=target}"
target=$(realpath "$CARGO_TARGET_DIR")
venv=$target/schemathesis
wanted=tests/schemathesis/requirements.txt
hooks=$PWD/tests/schemathesis/hooks.py

# Installs what is wanted, unless it is there.
install() {
  cmp -s "$wanted" "$venv/wanted.txt" && return
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
  cp "$wanted" "$venv/wanted.txt"
}

stop() {
  [[ -z ${server-} ]] || kill "$server" 2>/dev/null || true
  rm -rf "$scratch"
}

{
  flock 9 # the script may run twice at a time
  install
} 9>"$target/.schemathesis.lock"
# As `./test` builds it, so that it is there already.
cargo test --quiet --workspace --all-features --test workers --no-run

scratch=$(mktemp -d -t tollgate-schemathesis.XXXXXX)
trap stop EXIT
exec {said}< <(exec "$target/debug/tollgate" serve --listen 127.0.0.1:0 --data "$scratch/data" 2>"$scratch/log")
server=$!
read -r line <&"$said"
export TOLLGATE_URL=${line#tollgate listens on }

# What schemathesis leaves behind goes with the folder. Streams of events do not end.
cd "$scratch"
status=0
SCHEMATHESIS_HOOKS=$hooks timeout --foreground "$SECONDS_MAX" \
  "$venv/bin/schemathesis" run "$TOLLGATE_URL/openapi.json" --checks "$CHECKS" --exclude-operation-id followEvents \
  --phases examples,coverage,fuzzing --max-examples "$EXAMPLES" --seed "$SEED" --continue-on-failure --warnings off \
  --request-timeout 20 "$@" || status=$?

kill "$server"
if ! wait "$server" || grep -q panicked "$scratch/log"; then
  echo 'schemathesis.sh: the server did not bear it; it said:' >&2
  tail -n 50 "$scratch/log" >&2
  status=1
fi
server=
exit "$status"
