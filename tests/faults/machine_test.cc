// Machines that lack or limit what a run needs.
#include <doctest/doctest.h>

#include "tests/faults/failure.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

TEST_CASE("a processor without bfloat16 ends a run before data is read and roles are started") {
  for (auto level: {"DNNL_MAX_CPU_ISA=AVX512_CORE"_kj, "DNNL_MAX_CPU_ISA=AVX2"_kj}) {
    INFO(level);
    auto folder = newFolder();
    auto cache = kj::str("RUNNER_CACHE=", folder, "/cache");
    auto runs = kj::str(folder, "/runs");
    kj::StringPtr environment[] = {level, cache};
    Command command({RUNNER, "run", ENDLESS, "--runs", runs, "--set", "train.precision=bf16"},
        {.environment = environment});
    auto ended = command.wait();
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors,
        "--set train.precision:1:17: error: train.precision = \"bf16\" needs a processor with "));
    CHECK(contains(ended.errors, "DNNL_MAX_CPU_ISA"));
    CHECK(Command({"ls", "-A", folder}).wait().output == "");
  }
}

// Runs `script`, in which $1 is the program and $2 the folder of the runs.
Ended runScript(kj::ArrayPtr<const kj::StringPtr> before, kj::StringPtr script) {
  auto cache = cacheSetting();
  auto runs = newFolder();
  // The thread sanitizer writes a file to TMPDIR if it can. The limits would cut that file, too.
  kj::StringPtr environment[] = {cache, "TMPDIR=/nowhere"};
  kj::Vector<kj::StringPtr> words;
  words.addAll(before);
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({"sh", "-c", script, "sh", RUNNER, runs}));
  return Command(words, {.environment = environment}).wait();
}

TEST_CASE("a limit on the size of files fails a run with an error that names the limit") {
  train("tests/faults/short.toml", {"train.epochs=1"});  // imports the data
  // Blocks of 512 bytes: too little for shared memory, and for all events.
  for (auto script: {"ulimit -f 100; exec \"$1\" run tests/faults/short.toml --runs \"$2\""_kj,
           "ulimit -f 1000; exec \"$1\" run tests/faults/short.toml --runs \"$2\" "
           "--set log.every=1 --set train.epochs=10"_kj}) {
    INFO(script);
    auto ended = runScript(nullptr, script);
    checkFailed(ended, {"File too large", "Raise the limit on the size of a file (`ulimit -f`)"});
    CHECK_FALSE(contains(ended.errors, "memory ran out"));
    CHECK_FALSE(contains(ended.errors, "choose another folder"));
  }
}

TEST_CASE("a limit on the number of open files fails a run with an error that names the limit") {
  // The address sanitizer makes a pipe to find out whether an address can be read. Without a
  // descriptor it reports errors where there are none.
  if (hasAddressSanitizer()) SKIP_CASE("the address sanitizer needs file descriptors of its own");
  train("tests/faults/short.toml", {"train.epochs=1"});  // imports the data
  for (auto launcher: {"local"_kj, "inline"_kj}) {
    for (uint limit: {9, 12, 16}) {
      CAPTURE(launcher);
      CAPTURE(limit);
      auto ended =
          runScript(nullptr, kj::str("ulimit -n ", limit,
                                 "; exec \"$1\" run tests/faults/short.toml --runs \"$2\" --set "
                                 "cluster.launcher=",
                                 launcher));
      auto words = kj::str("cannot open more files: the limit (`ulimit -n`) is ", limit);
      checkFailed(ended, {words});
      for (auto call: {"::pipe2", "open(", "eventfd("}) CHECK_FALSE(contains(ended.errors, call));
    }
  }
}

TEST_CASE("a limit on CPU time fails a run with an error that names the limit") {
  train("tests/faults/short.toml", {"train.epochs=1"});  // imports the data
  auto ended =
      runScript(nullptr, "ulimit -S -t 2; exec \"$1\" run tests/faults/endless.toml --runs \"$2\"");
  checkFailed(ended, {"CPU time limit exceeded", "raise the limit on its CPU time (`ulimit -t`)"});
}

TEST_CASE("a PWD that names another folder than the current one does no harm") {
  kj::StringPtr environment[] = {"PWD=/"};
  auto ended = Command({RUNNER, "check", ENDLESS}, {.environment = environment}).wait();
  CHECK(ended.exitCode == 0);
  CHECK(ended.errors == "");
}

TEST_CASE("in a folder that was removed, a command says so in one line") {
  auto folder = kj::str(newFolder(), "/gone");
  auto ended =
      runScript(nullptr, kj::str("mkdir ", folder, " && program=$(realpath \"$1\") && cd ", folder,
                             " && rmdir ", folder, " && exec \"$program\" check /any.toml"));
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "error: the current folder was removed: change to one that exists"));
}

TEST_CASE("a run needs no /proc") {
  if (hasAddressSanitizer()) SKIP_CASE("the address sanitizer finds stacks by /proc");
  kj::StringPtr unshare[] = {"unshare", "--user", "--map-root-user", "--mount"};
  if (runScript(unshare, "mount -t tmpfs none /proc").exitCode != 0) {
    SKIP_CASE("this machine lets no user mount a file system");
  }
  auto ended = runScript(unshare,
      "mount -t tmpfs none /proc && exec \"$1\" run tests/faults/short.toml --runs \"$2\" "
      "--set train.epochs=1");
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
}

}  // namespace
}  // namespace tests
