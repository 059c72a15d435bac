#!/usr/bin/env bash
# Runs the SDKs of QStash, as npm and PyPI have them, against the real server, with receivers that record what is
# delivered. It needs Node 18.19 with npm, and Python 3.10 with venv; the SDKs go into the target folder.
#
#   tests/qstash.sh [NAME...]                only these scenarios: `tests/qstash.sh flow_control test_messages`
#   tests/qstash.sh --postgres [NAME...]     on a PostgreSQL of its own instead of a folder
#
# Scenarios are tests/qstash/*.test.mjs and tests/qstash/test_*.py. Each file starts servers of its own, with
# data of their own, on ports that the system picks; so files run side by side. TOLLGATE_BIN says which binary.
set -euo pipefail

# Files of scenarios that run side by side. They wait most of the time, so there may be more than cores.
readonly SIDE_BY_SIDE=4
# Longest time for the scenarios in each language: each takes less than a minute.
readonly SECONDS_MAX=300

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "${CARGO_TARGET_DIR:=target}"
target=$(realpath "$CARGO_TARGET_DIR")
scenarios=$PWD/tests/qstash
# What is set for an application or a server on this machine is not for these.
binary=${TOLLGATE_BIN-}
for variable in "${!QSTASH_@}" "${!TOLLGATE_@}"; do unset "$variable"; done
export QSTASH_PACKAGES=$target/qstash/node
venv=$target/qstash/python

# Installs what is wanted for Node, unless it is there.
install_for_node() {
  cmp -s "$scenarios/package-lock.json" "$QSTASH_PACKAGES/wanted.json" && return
  rm -rf "$QSTASH_PACKAGES"
  mkdir -p "$QSTASH_PACKAGES"
  cp "$scenarios/package.json" "$scenarios/package-lock.json" "$QSTASH_PACKAGES"
  npm --prefix "$QSTASH_PACKAGES" ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp "$scenarios/package-lock.json" "$QSTASH_PACKAGES/wanted.json"
}

# The same for Python.
install_for_python() {
  cmp -s "$scenarios/requirements.txt" "$venv/wanted.txt" && return
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$scenarios/requirements.txt"
  cp "$scenarios/requirements.txt" "$venv/wanted.txt"
}

# The scenarios of pattern $1, or those of them that were asked for, one a line.
wanted_of() {
  local file name
  for file in "$scenarios"/$1; do
    [[ -e $file ]] || continue
    name=$(basename "$file")
    if [[ -z ${names[*]-} || " ${names[*]} " == *" ${name%%.*} "* ]]; then echo "$file"; fi
  done
}

run_in_node() {
  local files
  mapfile -t files < <(wanted_of '*.test.mjs')
  [[ ${#files[@]} -eq 0 ]] && return
  timeout --foreground "$SECONDS_MAX" node --test --test-concurrency "$SIDE_BY_SIDE" --test-reporter spec "${files[@]}"
}

run_in_python() {
  local modules
  mapfile -t modules < <(wanted_of 'test_*.py' | sed 's|.*/||; s|\.py$||')
  [[ ${#modules[@]} -eq 0 ]] && return
  # Buffered, for the SDK prints every page of logs that it reads. -B, to leave nothing beside the sources.
  cd "$scenarios"
  timeout --foreground "$SECONDS_MAX" "$venv/bin/python" -B -m unittest --buffer "${modules[@]}"
}

# Starts a PostgreSQL that only files in a folder of its own lead to, until the script ends.
start_postgres() {
  local programs as=()
  stop=(true) # until there is something to stop
  programs=$(dirname "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb | tail -n 1)")
  database=$(mktemp -d -t tollgate-qstash-postgres-XXXXXX)
  trap stop_postgres EXIT
  if [[ $EUID -eq 0 ]]; then # which it refuses to run as
    chown postgres "$database"
    as=(setpriv --reuid postgres --regid postgres --clear-groups)
  fi
  # Each file of scenarios starts servers of its own, and each server holds up to ten connections.
  local settings="-c listen_addresses= -c unix_socket_directories=$database -c fsync=off -c max_connections=300"
  cd "$database" # which it may read
  "${as[@]}" "$programs/initdb" --pgdata data --auth trust --username postgres --encoding UTF8 --locale C >/dev/null
  "${as[@]}" "$programs/pg_ctl" start --pgdata data --wait --log log --options "$settings" >/dev/null
  stop=("${as[@]}" "$programs/pg_ctl" stop --pgdata "$database/data" --mode immediate)
  cd "$OLDPWD"
  export STORE_OF_SCENARIOS=postgres://postgres@${database//\//%2F}/postgres
}

stop_postgres() {
  "${stop[@]}" >/dev/null || true
  rm -rf "$database"
}

is_on_postgres=
if [[ ${1-} == --postgres ]]; then
  is_on_postgres=yes
  shift
fi
names=("$@")
mkdir -p "$target/qstash"
{
  flock 9 # the script may run twice at a time
  install_for_node
  install_for_python
} 9>"$target/.qstash.lock"
if [[ -z $binary ]]; then
  # As `./test` builds it, so that it is there already.
  cargo test --quiet --workspace --all-features --test workers --no-run
  binary=$target/debug/tollgate
fi
export TOLLGATE_BIN=$binary
if [[ -n $is_on_postgres ]]; then start_postgres; fi

# Side by side, too. What the scenarios in Python print comes at the end, from a file without a name.
heard=$(mktemp)
exec 3<>"$heard"
rm "$heard"
status=0
run_in_python &>/dev/fd/3 &
in_python=$!
run_in_node || status=$?
wait "$in_python" || status=$?
cat /dev/fd/3
exit "$status"
