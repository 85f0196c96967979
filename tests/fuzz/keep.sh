#!/usr/bin/env bash
# Keeps the inputs that runs of tests/fuzz/run.sh have found: tests/fuzz/keep.sh NAME
# Packs the smallest inputs that cover the same code into tests/fuzz/corpus/NAME.tar.xz. The next
# run starts from this archive. The same inputs give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=${1:?name of a target in tests/fuzz/BUILD}
kept=${FUZZ_FOLDER:-$HOME/.cache/runner-fuzz}/$name
smallest=$(mktemp -d)
trap 'rm -rf "$smallest"' EXIT
"$kept/program" -merge=1 -rss_limit_mb=1024 -timeout=10 -max_len=16384 "$smallest" "$kept/corpus"
archive=$PWD/tests/fuzz/corpus/$name.tar.xz
cd "$smallest"
tar --owner=0 --group=0 --numeric-owner --mode=644 --mtime=@0 -cf - -- * | xz -9 >"$archive"
