#!/usr/bin/env bash
# Writes tests/bad/*.expected anew from what the program prints. Read the differences: each line
# must tell a user what is wrong, where, and the way out.
set -euo pipefail
cd "$(dirname "$0")/.."
bazel build --noshow_progress --show_result=0 --ui_event_filters=-info //runner >&2
runner=$(bazel info bazel-bin 2>/dev/null)/runner/runner
for file in tests/bad/*.toml; do
  read -r -a words <<<"$(sed -n '1s/^# with: //p' "$file")"
  status=0
  "$runner" check "$file" "${words[@]}" 2>"${file%.toml}.expected" >/dev/null || status=$?
  [ $status = 2 ] || echo "$file: exit code $status in place of 2" >&2
done
git --no-pager diff --stat -- tests/bad
