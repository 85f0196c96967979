#!/usr/bin/env bash
# Installs what is missing, runs tidy and every test.
# Ends with the line `N passed, N failed, N skipped`, which counts test cases. --long also runs the
# tests tagged `long`.
set -uo pipefail
unset CDPATH # with it, `cd` may enter another folder
cd "$(dirname "$(readlink -f "$0")")"
tools/install.sh || exit 1
# The tests of jobs over several hosts skip cases whose programs are missing. The packages of these
# programs contain daemons, which Debian starts when it installs them. They are therefore installed
# only where a policy-rc.d can forbid this, or where no systemd runs.
if [ "$(id -u)" = 0 ] && { [ -x /usr/sbin/policy-rc.d ] || [ ! -d /run/systemd/system ]; }; then
  tools/install.sh tools/packages-hosts.txt || echo "not installed: tools/packages-hosts.txt" >&2
fi

excluded=(gpu)
[ "${1:-}" = --long ] || excluded+=(long)
[ "$(id -u)" = 0 ] || excluded+=(root)
filter=$(printf -- ',-%s' "${excluded[@]}")

broken=0
python3 tools/tidy.py || broken=$((broken + 1))

# Logs of earlier runs would be counted again.
logs=$(bazel info bazel-testlogs 2>/dev/null)
[ -n "$logs" ] && rm -rf "${logs:?}"
# One file that does not compile must not keep the other tests from running.
told=$(mktemp)
trap 'rm -f "$told"' EXIT
bazel test --noshow_progress --keep_going --build_tests_only --test_tag_filters="${filter#,}" \
  //... 2>&1 | tee "$told" || broken=$((broken + 1))

# A test program that is left out counts as one skipped case, for the first of its tags.
left_out=0
counted="set()"
for tag in "${excluded[@]}"; do
  tagged="attr(tags, '[\\[ ]$tag[,\\]]', tests(//...))"
  programs=$(bazel query --noshow_progress "$tagged except ($counted)" 2>/dev/null | wc -l)
  [ "$programs" = 0 ] || echo "skipped: $programs test programs tagged $tag"
  left_out=$((left_out + programs))
  counted="$counted union $tagged"
done

output() {
  find -L "$logs" -name test.log -print0 | xargs -0 -r cat | sed 's/\x1b\[[0-9;]*m//g'
}
output | grep -a '^SKIPPED CASE: ' | sort | uniq -c |
  sed -E 's/^ *([0-9]+) SKIPPED CASE: (.*)/skipped: \1 cases: \2/'

# doctest ends with `test cases: N | P passed | F failed | S skipped`. It counts a case that ended
# with SKIP_CASE as passed. If no case has failed, each failed command (bazel, tidy) counts as one.
grep -aE '^ERROR: |^//.* (FAILED|TIMEOUT|NO STATUS)' "$told" | cut -c1-300
output | awk -v left_out=$left_out -v broken=$broken '
  /test cases:/ {
    split($0, part, "|")
    for (i = 2; i <= 4; i++) {
      match(part[i], /[0-9]+/)
      n[i] += substr(part[i], RSTART, RLENGTH)
    }
  }
  /^SKIPPED CASE: / { skipped++ }
  END {
    if (broken > 0 && n[3] == 0) n[3] = broken
    printf "%d passed, %d failed, %d skipped\n", n[2] - skipped, n[3], n[4] + skipped + left_out
  }'
[ $broken = 0 ]
