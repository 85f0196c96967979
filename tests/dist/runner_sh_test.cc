// runner.sh, with a fake Bazel: which programs it runs, and its message for a user who cannot
// build.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/text.h"

namespace tests {
namespace {

// Builds below $HOME, or below --output_user_root. It fails if that folder does not exist.
constexpr kj::StringPtr BAZEL = R"sh(#!/bin/bash
base=$HOME
disk=none
words=()
for word in "$@"; do
  case $word in
    --output_user_root=*) base=${word#*=} ;;
    --disk_cache=*) disk=${word#*=} ;;
    *) words+=("$word") ;;
  esac
done
[ -d "$base" ] || { echo "FATAL: mkdir('$base'): Permission denied" >&2; exit 36; }
case ${words[0]} in
  build)
    mkdir -p "$base/bin/runner"
    printf '#!/bin/sh\necho "built below %s, disk cache %s: $*"\n' "$base" "$disk" \
      >"$base/bin/runner/runner"
    chmod +x "$base/bin/runner/runner"
    ;;
  info) echo "$base/bin" ;;
esac
)sh"_kj;

void writeScript(kj::StringPtr path, kj::StringPtr text) {
  writeFile(path, text);
  REQUIRE(::chmod(path.cStr(), 0755) == 0);
}

// A working tree of which only runner.sh is real.
struct Tree {
  kj::String folder = newFolder();

  Tree() {
    REQUIRE(::mkdir(at("tools").cStr(), 0777) == 0);
    REQUIRE(::mkdir(at("programs").cStr(), 0777) == 0);
    writeScript(at("tools/install.sh"), "#!/bin/sh\n");
    writeScript(at("programs/bazel"), BAZEL);
    writeScript(at("runner.sh"), readFile("runner.sh"));
  }

  kj::String at(kj::StringPtr name) const { return kj::str(folder, "/", name); }

  Ended call(kj::StringPtr home, kj::StringPtr build = "") {
    auto path = kj::str("PATH=", at("programs"), ":", ::getenv("PATH"));
    auto homeSetting = kj::str("HOME=", home), buildSetting = kj::str("RUNNER_BUILD=", build);
    kj::StringPtr environment[] = {path, homeSetting, buildSetting};
    auto program = at("runner.sh");
    return Command({program, "check", "x.toml"}, {.environment = environment}).wait();
  }
};

TEST_CASE("runner.sh runs its caller's build, although bazel-bin leads to another user's") {
  Tree tree;
  REQUIRE(::symlink("/nonexistent/bin", tree.at("bazel-bin").cStr()) == 0);
  auto home = newFolder();
  auto ended = tree.call(home);
  CHECK(ended.errors == "");
  CHECK(ended.output == kj::str("built below ", home, ", disk cache none: check x.toml\n"));
}

TEST_CASE("runner.sh says what to do if a user can neither build nor read another user's build") {
  Tree tree;
  REQUIRE(::symlink("/nonexistent/bin", tree.at("bazel-bin").cStr()) == 0);
  auto ended = tree.call("/nonexistent");
  CHECK(ended.exitCode == 1);
  CHECK(ended.output == "");
  INFO(ended.errors);
  CHECK(contains(ended.errors, kj::str("cannot read what another user has built:\n",
                                   tree.at("bazel-bin"), " leads to /nonexistent/bin.\n")));
  CHECK(contains(ended.errors, "RUNNER_BUILD=/path/to/folder "));
  CHECK(contains(ended.errors, "bazel build //runner:dist && tar xzf "));
}

TEST_CASE("runner.sh builds below RUNNER_BUILD, which it makes if it does not exist") {
  Tree tree;
  auto build = kj::str(newFolder(), "/new");
  auto ended = tree.call("/nonexistent", build);
  CHECK(ended.errors == "");
  CHECK(ended.output ==
        kj::str("built below ", build, ", disk cache ", build, "/disk: check x.toml\n"));
}

TEST_CASE("runner.sh leaves it to Bazel to say why a build of one's own failed") {
  Tree tree;
  auto ended = tree.call("/nonexistent");
  CHECK(ended.exitCode == 1);
  CHECK(ended.errors == "FATAL: mkdir('/nonexistent'): Permission denied\n");
}

}  // namespace
}  // namespace tests
