# tools/gpu/parts.sh: runs the parts of a stage for verify.sh, keeps their results, ends the stage.
# shellcheck shell=bash disable=SC2154

parts=$folder/$stage.parts # the devices, then one line per part: name, tab, JSON
log=$folder/$stage.log
errors=$folder/$stage.errors
begun=$(date +%s)
left=()   # JSON: "name"
failed=() # JSON: "name": "reason"

# quoted TEXT: prints it as a string of JSON.
quoted() {
  printf '"%s"' "$(printf %s "$1" | sed 's/[\\"]/\\&/g' | tr '\n\t' '; ' | tr -d '\000-\037')"
}

# number JSON KEY: prints the number of this key.
number() {
  sed -nE 's/.*"'"$2"'": ?(-?[0-9][-+.0-9e]*).*/\1/p' <<<"$1"
}

elapsed_s() {
  echo $(($(date +%s) - begun))
}

# leave EXIT_CODE OUTCOME: writes the stage's JSON, prints the outcome, and ends.
leave() {
  local separator=''
  {
    printf '{"stage": "%s", "exit_code": %d, "outcome": %s, "seconds": %d, "devices": %s' \
      "$stage" "$1" "$(quoted "$2")" "$(elapsed_s)" "$(quoted "$devices")"
    printf ', "parts": {'
    if [ -f "$parts" ]; then
      while IFS=$'\t' read -r name json; do
        printf '%s"%s": %s' "$separator" "$name" "$json"
        separator=', '
      done < <(tail -n +2 "$parts")
    fi
    printf '}, "failed": {%s}, "left": [%s]}\n' "$(joined ${failed[@]+"${failed[@]}"})" \
      "$(joined ${left[@]+"${left[@]}"})"
  } >"$folder/$stage.json"
  echo "$stage: $2"
  exit "$1"
}

# joined WORD…: prints them with commas between them.
joined() {
  local separator='' word
  for word in "$@"; do
    printf '%s%s' "$separator" "$word"
    separator=', '
  done
}

# Parts of another machine cannot be used here.
begin_parts() {
  local here
  here=devices$'\t'$(quoted "$devices")
  [ -f "$parts" ] || echo "$here" >"$parts"
  [ "$(head -n 1 "$parts")" = "$here" ] && return
  echo "error: $parts is from another machine; choose another folder, or start over: --again" >&2
  exit "$WRONG"
}

# kept NAME: prints the JSON of a finished part. False if the part is not finished.
kept() {
  awk -F '\t' -v name="$1" '
    NR > 1 && $1 == name { print $2; found = 1 }
    END { exit !found }' "$parts"
}

# part NAME LIMIT_S WORDS…: runs WORDS, which print one line of JSON, unless the part is finished.
# The part does not begin if less than a quarter of its limit is left. If the end of the stage cuts
# it off, it is left for the next call. If its own limit cuts it off, it has failed.
part() {
  local name=$1 limit_s=$2 json code remaining_s=$((LIMIT_S - $(elapsed_s))) cut=
  shift 2
  kept "$name" >/dev/null && return
  if [ "$remaining_s" -lt $((limit_s / 4)) ]; then
    left+=("\"$name\"")
    return
  fi
  [ "$limit_s" -gt "$remaining_s" ] && limit_s=$remaining_s cut=yes
  echo "--- $name" | tee -a "$log" >&2
  json=$("$@" 2>"$errors")
  code=$?
  cat "$errors" >>"$log"
  if [ $code = 0 ] && [[ $json == \{*\} ]]; then
    printf '%s\t%s\n' "$name" "$json" >>"$parts"
  elif [ -n "$cut" ] && { [ $code = 124 ] || [ $code = 137 ]; }; then
    left+=("\"$name\"")
  else
    fail_part "$name" "$code" "$limit_s"
  fi
  rm -f "$errors"
}

fail_part() {
  local why
  # Our programs print the error first. Python prints it last.
  why=$(grep -m 1 -E '(^|: )error: ' "$errors" || grep -v '^ *$' "$errors" | tail -n 1)
  case $2 in
    124 | 137) why="took more than $3 s" ;;
    *) why=${why:-exit code $2} ;;
  esac
  failed+=("\"$1\": $(quoted "$why")")
  echo "$1 failed: $why"
}

# limited WORDS…: runs WORDS within the time of the part.
limited() {
  timeout --kill-after=10 "$limit_s" "$@"
}

# end_stage: ends the stage with the outcome of its parts.
end_stage() {
  [ ${#failed[@]} = 0 ] || leave "$HOLDS_NOT" "failed (parts: ${#failed[@]}); see $log"
  [ ${#left[@]} = 0 ] || leave "$LEFT" "parts are left (${#left[@]}): run the same command again"
  leave 0 "passed"
}
