#!/usr/bin/env bash
# Checks the console: its types, that what is built into the binary is what its sources give, and every page of it in
# Chromium, against the real server. It needs Node 18 with npm, and Chromium; TOLLGATE_BIN says which binary.
#
#   tests/console.sh [NAME...]    only these scenarios: `tests/console.sh limits dead`
#
# Pictures of what the browser saw are left in target/console.
set -euo pipefail

# Files of scenarios that run side by side: each has a server and a browser.
readonly SIDE_BY_SIDE=2
# Longest time for all scenarios: they take less than a minute.
readonly SECONDS_MAX=240

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "${CARGO_TARGET_DIR:=target}"
target=$(realpath "$CARGO_TARGET_DIR")
console=$PWD/crates/server/console
# What is set for a server on this machine is not for these.
binary=${TOLLGATE_BIN-}
for variable in "${!TOLLGATE_@}"; do unset "$variable"; done
export TOLLGATE_PICTURES=$target/console

# Installs what is wanted, unless it is there.
install() {
  cmp -s "$console/package-lock.json" "$console/node_modules/wanted.json" && return
  npm --prefix "$console" ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp "$console/package-lock.json" "$console/node_modules/wanted.json"
}

# Compares what is committed with what the sources give.
is_current() {
  rm -rf "$target/console/dist"
  (cd "$console" && node build.mjs "$target/console/dist")
  diff --recursive --brief "$console/dist" "$target/console/dist" && return
  echo "console: crates/server/console/dist is not what its sources give: run npm run build there, and commit it" >&2
  return 1
}

mkdir -p "$target/console"
{
  flock 9 # the script may run twice at a time
  install
} 9>"$target/.console.lock"
(cd "$console" && npm run --silent check)
is_current
# As `./test` builds both, so that they are there already.
if [[ -z $binary ]]; then
  cargo test --quiet --workspace --all-features --test workers --no-run
  binary=$target/debug/tollgate
fi
cargo build --quiet --workspace --all-features --example approval
export TOLLGATE_BIN=$binary
export TOLLGATE_APPROVAL=$target/debug/examples/approval

scenarios=()
for file in "$console"/test/*.test.mjs; do
  name=$(basename "$file" .test.mjs)
  if [[ $# -eq 0 || " $* " == *" $name "* ]]; then scenarios+=("$file"); fi
done
timeout --foreground "$SECONDS_MAX" node --test --test-concurrency "$SIDE_BY_SIDE" --test-reporter spec "${scenarios[@]}"
