#!/usr/bin/env bash
# Checks on a machine with a GPU that the CUDA backend is correct and fast. Runs from the root of
# the repository, after a build, or from the folder that //runner:dist unpacks to:
# tools/gpu/verify.sh check|train|peers|cifar [FOLDER] [--again]
#   check   the cases of every op agree with the reference, on the GPU too; the losses agree with
#           the CPU's; compute-sanitizer, if it is installed, finds no error
#   train   images/s of each network in each precision; a training reaches the same accuracy as on
#           the CPU
#   peers   images/s of each network beside PyTorch's; the first python3 on the path has PyTorch
#   cifar   whole CIFAR-10 runs, one per seed, reach 94 % in the mean; RUNNER_DATASETS names a
#           folder that holds cifar10
# A stage consists of parts. Finished parts are kept in FOLDER/STAGE.parts (default: gpu_results),
# and are not run again without --again. A call ends within 9 minutes and writes FOLDER/STAGE.json.
# The output of the parts goes to FOLDER/STAGE.log.
# Exit codes: 0 the stage passed, 1 it failed, 2 the command is wrong, 3 no data set, 4 no GPU,
# 5 parts are left: run the same command again.
set -uo pipefail
HOLDS_NOT=1
WRONG=2
NO_DATA=3
NO_GPU=4
LEFT=5
LIMIT_S=530

root=$(cd "$(dirname "$0")/../.." && pwd)
usage() {
  sed -n '/^# tools\/gpu/,/^set/{/^#/s/^# //p}' "$0" >&2
  exit $WRONG
}
words=()
again=
for word in "$@"; do
  case $word in
    --again) again=yes ;;
    -*) usage ;;
    *) words+=("$word") ;;
  esac
done
[ ${#words[@]} -ge 1 ] && [ ${#words[@]} -le 2 ] || usage
stage=${words[0]}
case $stage in
  check | train | peers | cifar) ;;
  *) usage ;;
esac
mkdir -p "${words[1]:-gpu_results}" || exit $WRONG
folder=$(cd "${words[1]:-gpu_results}" && pwd)
[ -z "${RUNNER_DATASETS:-}" ] || RUNNER_DATASETS=$(realpath -m "$RUNNER_DATASETS")
cd "$root" || exit $WRONG

# program FOLDER NAME: prints the path of the program, unpacked or built.
program() {
  for place in "$root/$2" "$root/bazel-bin/$1/$2"; do
    [ -x "$place" ] && [ -f "$place" ] && echo "$place" && return
  done
  echo "error: cannot find $2; build //runner:dist, or unpack the archive that it makes" >&2
  exit $WRONG
}

runner=$(program runner runner) || exit $WRONG
devices=$("$runner" devices) || exit $HOLDS_NOT
. tools/gpu/parts.sh
. tools/gpu/networks.sh
. "tools/gpu/stage_$stage.sh"

reason=$(sed -n 's/^cuda: //p; s/^cuda:0: .*; cannot be used: //p' <<<"$devices")
[ -z "$reason" ] || leave $NO_GPU "no GPU: nothing to verify ($reason)"
bench=$(program tools/bench bench) || exit $WRONG
[ -z "$again" ] || rm -f "$parts"
begin_parts
"stage_$stage"
