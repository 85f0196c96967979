#!/usr/bin/env bash
# Installs what is missing, runs tidy and every test. Closing line: N passed, N failed, N skipped (cases).
# ./test.sh --long also runs the tests tagged `long`.
set -uo pipefail
cd "$(dirname "$0")"
tools/install.sh || exit 1

long=0
[ "${1:-}" = --long ] && long=1
excluded=(gpu)
[ $long = 1 ] || excluded+=(long)
[ "$(id -u)" = 0 ] || excluded+=(root)
filter=$(printf -- ',-%s' "${excluded[@]}")

failed_steps=0
python3 tools/tidy.py || failed_steps=$((failed_steps + 1))

# Logs of former runs would be counted again.
logs=$(bazel info bazel-testlogs 2>/dev/null)
[ -n "$logs" ] && rm -rf "${logs:?}"
bazel test --noshow_progress --build_tests_only --test_tag_filters="${filter#,}" //... 
bazel_status=$?
[ $bazel_status = 0 ] || failed_steps=$((failed_steps + 1))

# A test target that is left out counts as one skipped case.
left_out=0
for tag in "${excluded[@]}"; do
  targets=$(bazel query --noshow_progress "attr(tags, '\\b$tag\\b', tests(//...))" 2>/dev/null | wc -l)
  [ "$targets" = 0 ] || echo "skipped: $targets test targets tagged $tag"
  left_out=$((left_out + targets))
done

# doctest closes with `test cases: N | P passed | F failed | S skipped`; a case that left by SKIP_CASE is among the passed.
find -L "$logs" -name test.log -print0 2>/dev/null | xargs -0 -r cat | sed 's/\x1b\[[0-9;]*m//g' | grep -a 'SKIPPED CASE' | sort | uniq -c | sed 's/^ *\([0-9]*\) SKIPPED CASE:/skipped: \1 ×/'
find -L "$logs" -name test.log -print0 2>/dev/null | xargs -0 -r cat | sed 's/\x1b\[[0-9;]*m//g' | awk -v left_out=$left_out -v broken=$failed_steps '
  /test cases:/ { split($0, part, "|"); for (i = 2; i <= 4; i++) { match(part[i], /[0-9]+/); n[i] += substr(part[i], RSTART, RLENGTH) } }
  /SKIPPED CASE/ { in_case++ }
  END {
    # A step that failed without a failed case (a crash, a time-out, tidy) still fails the whole.
    if (broken > 0 && n[3] == 0) n[3] = broken
    printf "%d passed, %d failed, %d skipped\n", n[2] - in_case, n[3], n[4] + in_case + left_out
  }'
[ $failed_steps = 0 ]
