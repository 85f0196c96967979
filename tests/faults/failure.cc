#include "tests/faults/failure.h"

#include <kj/debug.h>
#include <string.h>

#include "tests/text.h"

namespace tests {

kj::Array<kj::String> errorLines(kj::StringPtr text) {
  kj::Vector<kj::String> found;
  for (size_t begin = 0; begin < text.size();) {
    auto rest = text.slice(begin);
    auto end = rest.findFirst('\n').orDefault(rest.size());
    if (rest.startsWith("error: ")) found.add(kj::heapString(rest.slice(0, end)));
    begin += end + 1;
  }
  return found.releaseAsArray();
}

void checkFailed(const Ended& ended, Words words) {
  INFO("stderr:\n", ended.errors);
  CHECK(ended.exitCode == 1);
  auto lines = errorLines(ended.errors);
  CHECK(lines.size() == 1);
  for (auto word: words) {
    INFO("must name: ", word);
    for (auto& line: lines) CHECK(contains(line, word));
  }
}

void checkNothingLeft(const Run& run) {
  auto left = processesWith(run.folder);
  for (auto& process: left) FAIL_CHECK("still runs: ", process.commandLine);
}

// A run in the middle of its training.
kj::Own<Run> startedRun(kj::StringPtr file, Words settings) {
  auto run = kj::heap<Run>(file, settings);
  KJ_REQUIRE(run->command.waitForOutput("Speed: "), run->command.output(), run->command.errors());
  return run;
}

}  // namespace tests
