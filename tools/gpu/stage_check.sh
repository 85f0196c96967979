# tools/gpu/stage_check.sh: the parts of the stage `check`: ops, losses, equal bits of two runs, and
# memory accesses.
# shellcheck shell=bash disable=SC2154

# On a machine with a GPU, no case of a GPU may be skipped.
check_gpu_ops() {
  local ops said code
  ops=$(program tests/ops check_test) || return 1
  said=$(limited "$ops" --test-case='*cuda:0*')
  code=$?
  echo "$said" >&2
  [ $code = 0 ] || return $code
  grep 'SKIPPED CASE' <<<"$said" >&2 && return 1
  grep -q 'test cases: *0 ' <<<"$said" && echo "no op has a case for the GPU" >&2 && return 1
  echo '{"holds": true}'
}

check_other_ops() {
  local ops
  ops=$(program tests/ops check_test) || return 1
  limited "$ops" --test-case-exclude='*cuda:0*' >&2 && echo '{"holds": true}'
}

# same_losses FILE OPTION…: the losses of 20 steps on the CPU and on the GPU agree to a thousandth.
same_losses() {
  local file=$1 cpu gpu
  shift
  cpu=$(limited "$bench" losses "$file" "$@" --set="$CPU") || return
  gpu=$(limited "$bench" losses "$file" "$@" --set="$GPU") || return
  printf 'cpu %s\ngpu %s\n' "$cpu" "$gpu" >&2
  printf '%s\n%s\n' "$cpu" "$gpu" | tr -d '{}[]" ' | sed 's/^losses://' | awk -F , '
    NR == 1 { steps = split($0, cpu, ",") }
    NR == 2 {
      if (NF != steps) bad = 1
      for (i = 1; i <= steps; i++) {
        if ($i !~ /^[0-9]/) bad = 1
        apart = ($i - cpu[i]) / cpu[i]
        if (apart < 0) apart = -apart
        if (apart > most) most = apart
      }
    }
    END {
      if (NR != 2 || steps == 0 || bad || most > 1e-3) {
        print "the losses of the GPU differ by " most " (relative), or are missing" >"/dev/stderr"
        exit 1
      }
      printf "{\"steps\": %d, \"largest_difference\": %.3g}\n", steps, most
    }'
}

# same_twice FILE OPTION…: two runs with train.deterministic agree to the last digit.
same_twice() {
  local words=("$bench" losses "$@" --set="$GPU" --set=train.deterministic=true) first second
  first=$(limited "${words[@]}") && second=$(limited "${words[@]}") || return
  printf 'first %s\nsecond %s\n' "$first" "$second" >&2
  if [ "$first" != "$second" ]; then
    echo "the same run gives other losses the second time" >&2
    return 1
  fi
  echo '{"same": true}'
}

# Only a few steps, because compute-sanitizer slows kernels down a hundredfold.
sanitize() {
  local tool said code
  tool=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
  if [ ! -x "$tool" ]; then
    echo '{"outcome": "compute-sanitizer is not installed"}'
    return 0
  fi
  local words=("$bench" losses tests/peers/losses_cifar10.toml --steps=2
    --set=model.network=resnet-20 --set=data.batch_size=8 --classes=10 --set="$GPU")
  # This run measures which convolutions are fastest, and keeps the choice. Under compute-sanitizer
  # that would take too long, because it needs dozens of kernels per convolution.
  limited "${words[@]}" >&2 || return
  # Libraries ask for features that a GPU may lack, and expect the errors. These are not reported.
  said=$(limited "$tool" --tool memcheck --report-api-errors no --error-exitcode 9 \
    "${words[@]}" 2>&1)
  code=$?
  echo "$said" >&2
  if grep -q 'Device not supported' <<<"$said"; then
    echo '{"outcome": "compute-sanitizer does not support this machine"}'
    return 0
  fi
  [ $code = 0 ] || return $code
  echo '{"outcome": "no error"}'
}

stage_check() {
  local grey cifar
  grey="tests/peers/losses_fashion_mnist.toml $(synthetic 1 28 10)"
  cifar="tests/peers/losses_cifar10.toml --classes=10"
  part ops-gpu 400 check_gpu_ops
  part ops 300 check_other_ops
  # shellcheck disable=SC2086
  {
    part losses-mlp 120 same_losses $grey
    part losses-lenet 120 same_losses $grey --set=model.network=lenet
    part losses-inception-small 200 same_losses $cifar
    part losses-resnet-20 200 same_losses $cifar --set=model.network=resnet-20
    part losses-airbench94 200 same_losses $cifar --set=model.network=airbench94 \
      --set=data.augment.crop=32
  }
  # shellcheck disable=SC2086
  part deterministic 200 same_twice $cifar --set=train.precision=bf16
  part compute-sanitizer 300 sanitize
  tail -n +2 "$parts"
  end_stage
}
