#!/usr/bin/env bash
# Fuzzes one parser: tests/fuzz/run.sh NAME [SECONDS [OPTIONS OF LIBFUZZER…]]
# Begins with the inputs in the archive tests/fuzz/corpus/NAME.tar.xz. Keeps the inputs that it
# finds in ~/.cache/runner-fuzz/NAME (or in $FUZZ_FOLDER/NAME), and the next run starts from these
# too. tests/fuzz/keep.sh NAME puts them into the archive.
# Inputs that break something are in the subfolder crashes/. Fix the code, and add the input as
# tests/fuzz/corpus/NAME/WHAT.bin. Needs clang 14 or later.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=${1:?name of a target in tests/fuzz/BUILD}
seconds=${2:-600}
shift; shift || true
kept=${FUZZ_FOLDER:-$HOME/.cache/runner-fuzz}/$name
mkdir -p "$kept/corpus" "$kept/crashes"
archive=tests/fuzz/corpus/$name.tar.xz
[ ! -e "$archive" ] || tar -xJf "$archive" -C "$kept/corpus"
${BAZEL:-bazel} build --config=fuzz "//tests/fuzz:$name"
# A copy, so that another build does not replace the program while it runs.
cp -f "bazel-bin/tests/fuzz/$name" "$kept/program"
find -L "bazel-bin/tests/fuzz/$name.runfiles" -type f ! -name "$name" ! -name MANIFEST \
  ! -name '*.so*' | paste -sd, >"$kept/seeds"
# The sanitizer keeps little memory after it was freed, so that the memory stays in the processor's
# cache, and records one caller of each allocation. Inputs then take half to nine tenths of the
# time.
sanitizer=quarantine_size_mb=1:thread_local_quarantine_size_kb=64
sanitizer+=:malloc_context_size=1:max_malloc_fill_size=0
exec env UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=$sanitizer \
  "$kept/program" -max_total_time="$seconds" \
  -seed_inputs="@$kept/seeds" -artifact_prefix="$kept/crashes/" \
  -rss_limit_mb=1024 -malloc_limit_mb=100 -timeout=10 -max_len=16384 -print_final_stats=1 \
  "$@" "$kept/corpus"
