#!/usr/bin/env bash
# Builds the simulation with each deliberate bug in tests/simulation/mistakes, and reports after how
# many jobs the bug is found. Arguments name some of them: `find_mistakes.sh repeat_counted`. Run it
# in the top folder of a checkout. Takes minutes per mistake.
set -euo pipefail
top=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git worktree add --quiet --detach "$folder/tree" HEAD
trap 'git -C "$top" worktree remove --force "$folder/tree"; rm -rf "$folder"' EXIT
cd "$folder/tree"
missed=0
(($# > 0)) || set -- "$top"/tests/simulation/mistakes/*.patch
for mistake; do
  name=$(basename "$mistake" .patch)
  patch=$top/tests/simulation/mistakes/$name.patch
  git apply "$patch"
  bazel --output_base="$folder/base" build --noshow_progress --ui_event_filters=-info \
    //tests/simulation
  if bazel-bin/tests/simulation/simulation --jobs="${JOBS:-100000}" --until-found \
    > "$folder/$name.txt" 2>&1; then
    echo "$name: NOT FOUND"
    missed=1
  else
    echo "$name: $(grep ' jobs, ' "$folder/$name.txt")"
    grep -m 1 -A 4 '^violation' "$folder/$name.txt" | sed 's/^/  /' || tail -3 "$folder/$name.txt"
  fi
  git apply --reverse "$patch"
done
bazel --output_base="$folder/base" shutdown
exit $missed
