#!/usr/bin/env bash
# Installs what is missing, builds, and runs `runner` with the arguments given:
# ./runner.sh run configs/fashion_mnist_dist_sync.toml
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
"$root/tools/install.sh"
(cd "$root" && bazel build --noshow_progress --show_result=0 --ui_event_filters=-info \
  //runner //tools:all >&2)
exec "$root/bazel-bin/runner/runner" "$@"
