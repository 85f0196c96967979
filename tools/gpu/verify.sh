#!/usr/bin/env bash
# Shows on a machine with a GPU that the CUDA backend is right and fast. Runs from the root of the
# repository, after a build, or from the folder that //runner:dist unpacks to:
# tools/gpu/verify.sh check|train|peers|cifar [FOLDER]
#   check   every op's cases against the reference, on the GPU too
#   train   an experiment trains on the GPU as on the processor
#   peers   a step's time beside PyTorch's
#   cifar   a whole CIFAR-10 run reaches what its file expects
# Each leaves FOLDER/STAGE.json (default: gpu_results) and ends within 9 minutes.
# Exit codes: 0 it holds, 1 it does not, 2 the command is wrong, 4 no GPU, 5 not there yet,
# 124 it took too long.
set -uo pipefail
LIMIT_S=540
NO_GPU=4
NOT_YET=5

root=$(cd "$(dirname "$0")/../.." && pwd)
stage=${1:-}
folder=${2:-gpu_results}
case $stage in
  check | train | peers | cifar) ;;
  *)
    sed -n '/^# tools\/gpu/,/^set/{/^#/s/^# //p}' "$0" >&2
    exit 2
    ;;
esac

# program FOLDER NAME: where it is, unpacked or built.
program() {
  for place in "$root/$2" "$root/bazel-bin/$1/$2"; do
    [ -x "$place" ] && [ -f "$place" ] && echo "$place" && return
  done
  echo "error: $2 is not here; build //runner:dist, or unpack what it made" >&2
  exit 2
}

# quoted TEXT: as a string of JSON.
quoted() {
  printf '"%s"' "$(printf %s "$1" | sed 's/[\\"]/\\&/g' | tr '\n\t' '; ')"
}

mkdir -p "$folder" || exit 2
runner=$(program runner runner) || exit 2
devices=$("$runner" devices) || exit 1
begun=$(date +%s)

# leave EXIT_CODE OUTCOME: writes the stage's JSON, says the same, and ends.
leave() {
  printf '{"stage": "%s", "exit_code": %d, "outcome": %s, "seconds": %d, "devices": %s}\n' \
    "$stage" "$1" "$(quoted "$2")" $(($(date +%s) - begun)) "$(quoted "$devices")" \
    >"$folder/$stage.json"
  echo "$stage: $2"
  exit "$1"
}

reason=$(sed -n 's/^cuda: //p' <<<"$devices")
[ -z "$reason" ] || leave $NO_GPU "no GPU: nothing to verify ($reason)"

# run WORD…: the stage's own program, within its time.
run() {
  timeout --kill-after=10 "$LIMIT_S" "$@" 2>&1 | tee "$folder/$stage.log"
  code=${PIPESTATUS[0]}
  case $code in
    0) leave 0 "holds" ;;
    124 | 137) leave 124 "took more than $LIMIT_S s" ;;
    *) leave 1 "does not hold: exit code $code, see $folder/$stage.log" ;;
  esac
}

case $stage in
  check)
    ops=$(program tests/ops check_test) || exit 2
    # Its cases for a GPU are named by the backend.
    cases=$("$ops" --list-test-cases --test-case='*cuda*' | grep -ci '^ops:.*cuda')
    [ "$cases" -gt 0 ] || leave $NOT_YET "not there yet: no op has a case for the GPU"
    run "$ops"
    ;;
  *) leave $NOT_YET "not there yet: no program trains on a GPU" ;;
esac
