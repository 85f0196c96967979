# tools/gpu/stage_train.sh: the parts of the stage `train`: images/s, and one complete training.
# shellcheck shell=bash disable=SC2154

train_steps() { # FILE BATCH PRECISION OPTION…
  local file=$1 batch=$2 precision=$3
  shift 3
  limited "$bench" train "$file" --json --no-check --seconds=4 --set="$GPU" \
    --set=data.batch_size="$batch" --set=train.precision="$precision" "$@"
}

# Prints a data set for LeNet that this machine has, or nothing.
grey_data() {
  local sets=${RUNNER_DATASETS:-/none}
  if [ -d "$sets/mnist" ]; then
    echo mnist
  elif [ -d "$sets/fashion-mnist" ] || [ -d /usr/share/datasets/fashion-mnist ]; then
    echo fashion_mnist
  fi
}

# trained DEVICES DATA: prints LeNet's validation accuracy after the last epoch, with two
# synchronous workers.
trained() {
  local runs said code
  runs=$(mktemp -d)
  said=$(limited "$runner" run configs/fashion_mnist_dist_sync.toml --runs "$runs" --set="$1" \
    --set=data.dataset="\"$2\"" --set=train.epochs=2)
  code=$?
  rm -rf "$runs"
  echo "$said" >&2
  [ $code = 0 ] && awk -F '|' '/^\| +[0-9]+ \|/ { value = $4 + 0 } END { print value }' <<<"$said"
}

same_accuracy() { # DATA
  local cpu gpu
  cpu=$(trained "$CPU" "$1") && gpu=$(trained "$GPU" "$1") || return
  awk -v cpu="$cpu" -v gpu="$gpu" -v data="$1" 'BEGIN {
    if (!(cpu > 0.5 && gpu > cpu - 0.01 && gpu < cpu + 0.01)) {
      printf "validation accuracy is %s on the processor, %s on the GPU\n", cpu, gpu >"/dev/stderr"
      exit 1
    }
    printf "{\"data\": \"%s\", \"cpu\": %s, \"gpu\": %s}\n", data, cpu, gpu
  }'
}

# One row per network, one column per precision.
train_table() {
  local name file batch rest precision json
  printf '%-20s %6s' "images/s" batch
  printf ' %10s' $PRECISIONS
  echo
  while read -r name file batch rest; do
    printf '%-20s %6d' "$name" "$batch"
    for precision in $PRECISIONS; do
      json=$(kept "$name-$precision") && printf ' %10.0f' "$(number "$json" images_per_s)" ||
        printf ' %10s' -
    done
    echo
  done <<<"$NETWORKS"
  kept accuracy
}

stage_train() {
  local name file batch colours side classes precision data
  while read -r name file batch colours side classes <&3; do
    for precision in $PRECISIONS; do
      # The first run of a network also measures which convolutions are fastest on this GPU.
      # shellcheck disable=SC2046
      part "$name-$precision" 120 train_steps "$file" "$batch" "$precision" \
        $(synthetic "$colours" "$side" "$classes")
    done
  done 3<<<"$NETWORKS"
  data=$(grey_data)
  [ -z "$data" ] || part accuracy 240 same_accuracy "$data"
  train_table
  [ -n "$data" ] || kept accuracy >/dev/null || [ ${#failed[@]} -gt 0 ] || [ ${#left[@]} -gt 0 ] ||
    leave "$NO_DATA" "nothing to train on: RUNNER_DATASETS holds neither mnist nor fashion-mnist"
  end_stage
}
