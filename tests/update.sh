#!/usr/bin/env bash
# Writes tests/bad/*.expected, tests/parse_log/*.expected and tests/kubernetes/job.yaml again from
# the output of the programs. Read the differences: each message must tell a user what is wrong,
# where, and what to do.
set -euo pipefail
cd "$(dirname "$0")/.."
bazel build --noshow_progress --show_result=0 --ui_event_filters=-info \
  //runner //tools:parse_log >&2
bin=$(bazel info bazel-bin 2>/dev/null)
for file in tests/bad/*.toml; do
  read -r -a words <<<"$(sed -n '1s/^# with: //p' "$file")"
  status=0
  "$bin/runner/runner" check "$file" "${words[@]}" \
    2>"${file%.toml}.expected" >/dev/null || status=$?
  [ $status = 2 ] || echo "$file: exit code $status instead of 2" >&2
done

# Prints the new content of the file $1: the text above its first command, then each command and its
# output.
transcript() {
  sed '/^\$ /,$d' "$1"
  sed -n 's/^\$ //p' "$1" | while IFS= read -r command; do
    echo "\$ $command"
    (
      cd tests/parse_log
      export TEST_TMPDIR=$work PATH=$bin/tools:/usr/bin:/bin
      sh -c "{ $command; } 2>&1; echo exit \$?" </dev/null
    )
  done
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in tests/parse_log/*.expected; do
  transcript "$file" >"$work/transcript"
  cp "$work/transcript" "$file"
done
"$bin/runner/runner" run tests/kubernetes/job.toml --dry-run >tests/kubernetes/job.yaml
git --no-pager diff --stat -- tests/bad tests/parse_log tests/kubernetes
