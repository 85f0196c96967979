#include "runner/commands/followed_run.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "runner/system/files.h"

namespace runner {
namespace {

TEST_CASE("FollowedLog: after a log was truncated, returns only the new lines") {
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/log.txt");
  FollowedLog log(kj::str(path));
  CHECK(log.more() == "");
  LineFile file(path);
  for (auto line: {"step 1", "step 2", "step 3 of worker 0"}) file.append(line);
  CHECK(log.more() == "step 1\nstep 2\nstep 3 of worker 0\n");
  CHECK_FALSE(log.wasCut());
  cutFile(path, 7);
  CHECK(log.more() == "");
  CHECK(log.wasCut());
  file.append("step 2, once more");
  CHECK(log.more() == "step 2, once more\n");
  CHECK_FALSE(log.wasCut());
  // A line has come already when the cut is noticed. It begins like one that was cut off.
  cutFile(path, 7);
  file.append("step 2");
  CHECK(log.more() == "step 2\n");
  CHECK(log.wasCut());
  // The log is longer than before when the cut is noticed.
  cutFile(path, 7);
  for (auto line: {"step 2, later", "step 3"}) file.append(line);
  CHECK(log.more() == "step 2, later\nstep 3\n");
  CHECK(log.wasCut());
  CHECK(log.more() == "");
  CHECK_FALSE(log.wasCut());
}

}  // namespace
}  // namespace runner
