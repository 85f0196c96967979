#include "tests/hosts/launched_run.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>

#include "tests/text.h"

namespace tests {

LaunchedRun::LaunchedRun(
    const Hosts& hosts, kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings)
    : hosts(hosts) {
  auto runs = newFolder();
  auto name = std::filesystem::path(file.cStr()).stem();
  folder = kj::str(runs, "/", name.c_str(), "/1");
  auto cache = cacheSetting();
  kj::Vector<kj::StringPtr> words;
  words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "run", file, "--runs", runs});
  for (auto setting: settings) {
    words.add("--set");
    words.add(setting);
  }
  kj::StringPtr environment[] = {cache};
  command = hosts.start(0, words, environment);
}

bool LaunchedRun::has(kj::StringPtr name) const {
  return ::access(kj::str(folder, "/", name).cStr(), F_OK) == 0;
}

Process LaunchedRun::launcher() const {
  for (auto& process: hosts.processes(0)) {
    bool isIt = process.commandLine.startsWith(kj::str(RUNNER, " run "));
    if (isIt) return kj::mv(process);
  }
  KJ_FAIL_REQUIRE("`runner run` does not run", command->output(), command->errors());
}

Process LaunchedRun::youngestRole(uint host) const {
  kj::Maybe<Process> found;
  for (auto& process: hosts.processes(host)) {
    bool isRole = contains(process.commandLine, "runner role ");
    // Leaves out the programs that start it.
    bool isItself = !contains(process.commandLine, " env ") && process.commandLine[0] == '/';
    if (isRole && isItself) found = kj::mv(process);
  }
  return kj::mv(KJ_REQUIRE_NONNULL(found, "no role runs there", host));
}

void LaunchedRun::checkNothingRuns() const {
  constexpr uint LIMIT_S = 5;
  for (uint host = 0; host < hosts.size(); host++) {
    auto left = hosts.processes(host);
    auto lines = KJ_MAP(process, left) {
      return kj::str(process.commandLine);
    };
    INFO(doctest::String(kj::strArray(lines, "\n").cStr()));
    CHECK(haveEnded(left, LIMIT_S));
  }
}

}  // namespace tests
