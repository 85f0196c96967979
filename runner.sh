#!/usr/bin/env bash
# Installs what is missing, builds, and runs `runner` with the arguments given:
# ./runner.sh run configs/fashion_mnist_dist_sync.toml
#
# Bazel builds below the caller's home, or below the folder that the environment's RUNNER_BUILD
# names.
set -euo pipefail
unset CDPATH # with it, `cd` may print its folder
root=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
"$root/tools/install.sh"

startup=()
options=()
if [ -n "${RUNNER_BUILD:-}" ]; then
  mkdir -p "$RUNNER_BUILD"
  folder=$(cd "$RUNNER_BUILD" && pwd)
  startup=(--output_user_root="$folder")
  options=(--disk_cache="$folder/disk")
fi
# Makes no links such as bazel-bin where the caller may not make them.
[ -w "$root" ] || options+=(--symlink_prefix=/)

call_bazel() {
  local command=$1
  shift
  (cd "$root" && bazel "${startup[@]}" "$command" "${options[@]}" "$@")
}

# Says what to do if another user has built in a home that the caller cannot read.
explain_failure() {
  local user
  user=$(id -un)
  [ -L "$root/bazel-bin" ] && [ ! -e "$root/bazel-bin/" ] || return 0
  cat >&2 <<TEXT
error: the user \`$user\` cannot build, and cannot read what another user has built:
$root/bazel-bin leads to $(readlink "$root/bazel-bin").
Build in a folder that this user can write:
  RUNNER_BUILD=/path/to/folder $0 …
Or let the other user pack the programs, and unpack them where this user can read them:
  bazel build //runner:dist && tar xzf bazel-bin/runner/runner.tar.gz -C /path/to/folder
TEXT
}

if ! call_bazel build --noshow_progress --show_result=0 --ui_event_filters=-info \
  //runner //tools:all >&2; then
  explain_failure
  exit 1
fi
# Does not use the link bazel-bin: it may lead to the build of another user.
exec "$(call_bazel info bazel-bin 2>/dev/null)/runner/runner" "$@"
