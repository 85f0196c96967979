# tools/gpu/stage_cifar.sh: the parts of the stage `cifar`: whole runs, one per seed.
# shellcheck shell=bash disable=SC2154

SEEDS_MIN=10
SEEDS_MAX=200 # the published mean is of 1,000 runs

# Runs one seed. Its seconds count the same work as the published ones: all steps, and the last
# evaluation with its six views. Unlike the published seconds, they exclude making the first
# weights. Both exclude loading the data, and the evaluations between epochs.
speed_run() { # SEED
  local runs code events
  runs=$(mktemp -d)
  limited "$runner" run configs/cifar10_airbench94.toml --runs "$runs" --set="$GPU" \
    --set=data.cache=device --set=train.precision=bf16 --set=train.seed="$1" >&2
  code=$?
  events=$(cat "$runs"/cifar10_airbench94/*/events.jsonl 2>/dev/null)
  rm -rf "$runs"
  # 3: the run finished, but missed an expectation of the file, which is meant for a single run.
  [ $code = 0 ] || [ $code = 3 ] || return $code
  awk -v seed="$1" '
    function value(key) {
      if (!match($0, "\"" key "\": ?[-+.0-9e]+")) return ""
      key = substr($0, RSTART, RLENGTH)
      sub(/.*:/, "", key)
      return key
    }
    /"role": ?"worker"/ && /"ended"/ { ended = value("time_s"); training = value("training_s") }
    /"role": ?"worker"/ && /"validated"/ && /"last": ?true/ {
      accuracy = value("accuracy"); evaluation = value("time_s") - ended
    }
    END {
      if (accuracy == "" || training == "") {
        print "the run has no last evaluation" >"/dev/stderr"
        exit 1
      }
      printf "{\"seed\": %d, \"accuracy\": %s, \"training_s\": %.4f, \"evaluation_s\": %.4f}\n",
        seed, accuracy, training, evaluation
    }' <<<"$events"
}

# Prints the mean over all seeds as a line of JSON.
cifar_summary() {
  tail -n +2 "$parts" | grep '^seed-' | sed -E 's/[^\t]*\t//; s/"[a-z_]+"://g; s/[{},]//g' | awk '
    { n++; a += $2; aa += $2 * $2; s += $3 + $4; ss += ($3 + $4) ^ 2; t += $3 }
    function error(sum, squares,    spread) {
      spread = squares - sum * sum / n
      return n < 2 || spread < 0 ? 0 : sqrt(spread / (n - 1) / n)
    }
    END {
      printf "{\"seeds\": %d, \"accuracy\": %.5f, \"accuracy_error\": %.5f, ", n, a / n,
        error(a, aa)
      printf "\"seconds\": %.4f, \"seconds_error\": %.4f, \"training_s\": %.4f}\n", s / n,
        error(s, ss), t / n
    }'
}

stage_cifar() {
  local seed seeds summary
  [ -d "${RUNNER_DATASETS:-/none}/cifar10" ] ||
    leave "$NO_DATA" "no data set: RUNNER_DATASETS must name a folder that holds cifar10"
  for ((seed = 1; seed <= SEEDS_MAX; seed++)); do
    part "seed-$seed" 120 speed_run "$seed"
    [ ${#failed[@]} = 0 ] && [ ${#left[@]} = 0 ] || break
  done
  seeds=$(tail -n +2 "$parts" | grep -c '^seed-')
  [ "$seeds" -gt 0 ] || end_stage
  summary=$(cifar_summary)
  printf '%-6s %10s %10s %9s %9s\n' seeds accuracy ± seconds ±
  printf '%-6d %10.5f %10.5f %9.3f %9.3f\n' "$seeds" "$(number "$summary" accuracy)" \
    "$(number "$summary" accuracy_error)" "$(number "$summary" seconds)" \
    "$(number "$summary" seconds_error)"
  # With SEEDS_MIN finished seeds, the stage is complete. Missing seeds do not keep it open.
  [ "$seeds" -lt $SEEDS_MIN ] || left=()
  [ ${#failed[@]} = 0 ] && [ ${#left[@]} = 0 ] || end_stage
  awk -v mean="$(number "$summary" accuracy)" -v error="$(number "$summary" accuracy_error)" \
    'BEGIN { exit !(mean + 2 * error >= 0.94) }' ||
    leave "$HOLDS_NOT" "failed: the mean accuracy is below 0.94: $summary"
  leave 0 "passed: $summary"
}
