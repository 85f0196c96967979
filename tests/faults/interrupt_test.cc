// Signals by which a user or the system ends a run or an import: exit code 130, and nothing half
// written. A run is recorded as interrupted.
#include <doctest/doctest.h>
#include <signal.h>
#include <string.h>

#include "tests/faults/failure.h"
#include "tests/faults/stranger.h"
#include "tests/text.h"

namespace tests {
namespace {

TEST_CASE("Ctrl-C, SIGTERM and SIGHUP end a run with exit code 130, and it is recorded as such") {
  for (int signal: {SIGINT, SIGTERM, SIGHUP}) {
    for (auto launcher: {"cluster.launcher=local"_kj, "cluster.launcher=inline"_kj}) {
      CAPTURE(signal);
      CAPTURE(launcher);
      auto run = startedRun(ENDLESS, {launcher});
      // A terminal sends Ctrl-C to the whole group.
      if (signal == SIGINT) {
        run->command.killGroup(signal);
      } else {
        run->command.kill(signal);
      }
      auto ended = run->command.wait(FAILS_WITHIN_S);
      CHECK(ended.exitCode == 130);
      CHECK(errorLines(ended.errors).size() == 0);
      CHECK(contains(ended.errors, "interrupted; all processes have ended\n"));
      checkNothingLeft(*run);
      auto name = signal == SIGINT ? "SIGINT"_kj : signal == SIGTERM ? "SIGTERM"_kj : "SIGHUP"_kj;
      auto reason = kj::str("received ", name);
      auto events = run->read("events.jsonl");
      CHECK(contains(events, kj::str("\"interrupted\":{\"reason\":\"", reason)));
      CHECK_FALSE(contains(events, "\"failed\""));
      CHECK(contains(run->read("table.md"), "| interrupted |\n"));
      for (auto file: {"log.txt", "worker-0.log", "server-1.log"}) {
        CHECK(contains(run->read(file), kj::str("the job was interrupted: ", reason)));
      }
    }
  }
}

TEST_CASE("a run that a signal ends is saved before it ends") {
  for (int signal: {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    auto run = startedRun(ENDLESS, nullptr);
    run->command.kill(signal);
    CHECK(run->command.wait().exitCode == 130);
    CHECK(countOf(run->read("events.jsonl"), "\"saved\":{") == 1);
  }
}

TEST_CASE("a run that was started to ignore SIGHUP, as by nohup, continues") {
  auto cache = cacheSetting();
  auto runs = newFolder();
  kj::StringPtr environment[] = {cache};
  kj::StringPtr words[] = {"sh", "-c", "trap '' HUP; exec \"$0\" run \"$1\" --runs \"$2\"", RUNNER,
      "tests/faults/short.toml", runs};
  Command command(words, {.environment = environment});
  REQUIRE(command.waitForOutput("Speed: "));
  command.kill(SIGHUP);
  CHECK(command.wait().exitCode == 0);
}

// The files and folders in `folder`, one per line, without locks.
kj::String unlockedIn(kj::StringPtr folder) {
  return Command({"find", folder, "-mindepth", "1", "!", "-name", "*.lock"}).wait().output;
}

TEST_CASE("a run that a signal ends while it fetches its data leaves nothing half written") {
  for (int signal: {SIGINT, SIGTERM}) {
    // A mirror that does not answer.
    Stranger mirror;
    auto folder = newFolder(), runs = newFolder();
    auto cache = kj::str("RUNNER_CACHE=", folder);
    auto source = kj::str("data.source=\"http://127.0.0.1:", mirror.port, "\"");
    kj::StringPtr environment[] = {cache};
    kj::StringPtr words[] = {RUNNER, "run", ENDLESS, "--set", source, "--runs", runs};
    Command command(words, {.environment = environment});
    auto call = mirror.accept();
    CHECK(unlockedIn(folder) != "");
    command.killGroup(signal);
    auto ended = command.wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 130);
    CHECK(errorLines(ended.errors).size() == 0);
    CHECK(ended.errors.endsWith("\ninterrupted; all processes have ended\n"));
    CHECK(unlockedIn(folder) == "");
    CHECK(unlockedIn(runs) == "");
  }
}

TEST_CASE("a run with --folder that a signal ends while it fetches its data notes its exit code") {
  Stranger mirror;
  auto folder = newFolder();
  auto cache = kj::str("RUNNER_CACHE=", newFolder());
  auto source = kj::str("data.source=\"http://127.0.0.1:", mirror.port, "\"");
  kj::StringPtr environment[] = {cache};
  kj::StringPtr words[] = {RUNNER, "run", ENDLESS, "--set", source, "--folder", folder};
  Command command(words, {.environment = environment});
  auto call = mirror.accept();
  command.kill(SIGTERM);
  CHECK(command.wait(FAILS_WITHIN_S).exitCode == 130);
  CHECK(contains(readFile(kj::str(folder, "/.lock")), "\nexit 130\n"));
}

TEST_CASE("evaluate that a signal ends while it fetches its data leaves nothing half written") {
  // With one array of one value.
  auto weights = kj::str(newFolder(), "/weights.safetensors");
  auto head = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"_kj;
  auto length = kj::heapString(8);
  memset(length.begin(), 0, length.size());
  length[0] = head.size();
  writeFile(weights, kj::str(length, head, "four"));
  Stranger mirror;
  auto folder = newFolder();
  auto cache = kj::str("RUNNER_CACHE=", folder);
  auto source = kj::str("data.source=\"http://127.0.0.1:", mirror.port, "/images.tar\"");
  auto start = kj::str("model.weights=\"", weights, "\"");
  kj::StringPtr environment[] = {cache};
  kj::StringPtr words[] = {RUNNER, "evaluate", ENDLESS, "--set", "data.dataset=image_folder",
      "--set", source, "--set", start};
  Command command(words, {.environment = environment});
  auto call = mirror.accept();
  command.kill(SIGINT);
  auto ended = command.wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 130);
  CHECK(errorLines(ended.errors).size() == 0);
  CHECK(unlockedIn(folder) == "");
}

TEST_CASE("pack_records that a signal ends while it fetches its data leaves nothing") {
  for (int signal: {SIGINT, SIGTERM}) {
    Stranger mirror;
    auto folder = newFolder();
    auto out = kj::str(folder, "/packed");
    auto source = kj::str("http://127.0.0.1:", mirror.port);
    Command command({"tools/pack_records", "--dataset", "mnist", "--source", source, out});
    auto call = mirror.accept();
    CHECK(unlockedIn(folder) != "");
    command.kill(signal);
    auto ended = command.wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 130);
    CHECK(ended.errors.endsWith(kj::str("\ninterrupted; ", out, " was not written\n")));
    CHECK(unlockedIn(folder) == "");
  }
}

}  // namespace
}  // namespace tests
