# tools/gpu/stage_peers.sh: the parts of the stage `peers`: rows of `bench peers`.
# shellcheck shell=bash disable=SC2154

# A row counts only if it has PyTorch's figure.
compare() { # ROW
  local json code
  json=$(limited "$bench" peers "$1" --device=cuda --python=python3 --rounds=3 --seconds=2 --json)
  code=$?
  [ $code = 0 ] && [[ $json != *'"skipped"'* ]] && echo "$json" && return
  echo "$json" >&2
  return $((code == 0 ? 1 : code))
}

peers_table() {
  local name file rest way json
  printf '%-30s %12s %12s %7s %7s %7s  %s\n' images/s ours PyTorch ratio lowest highest mode
  while read -r name file rest; do
    for way in $WAYS; do
      json=$(kept "$name-$way") || continue
      printf '%-30s %12s %12s %7s %7s %7s  %s\n' "$name-$way" "$(number "$json" ours)" \
        "$(number "$json" theirs)" "$(number "$json" ratio)" "$(number "$json" lowest)" \
        "$(number "$json" highest)" "$(sed -nE 's/.*"how":"([^"]*)".*/\1/p' <<<"$json")"
    done
  done <<<"$NETWORKS"
}

stage_peers() {
  local name file rest way limit_s
  # Compiled networks come last, because they take longest.
  for way in $WAYS; do
    limit_s=160
    [ "$way" != compiled ] || limit_s=420
    while read -r name file rest <&3; do
      part "$name-$way" $limit_s compare "$name-$way"
    done 3<<<"$NETWORKS"
  done
  peers_table
  end_stage
}
