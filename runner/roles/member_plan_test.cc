#include "runner/roles/member_plan.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/system/files.h"

namespace runner {
namespace {

TEST_CASE("MemberPlan: finds each worker's losses and joins in the events of a run") {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/plan")};
  REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
  constexpr kj::StringPtr EVENT = R"({"time_s":1,"role":"worker","index":)"_kj;
  auto event = [&](uint rank, uint64_t step, bool joined, kj::StringPtr held) {
    return kj::str(EVENT, rank, R"(,"membership":{"epoch":2,"step":)", step, R"(,"joined":)",
        joined ? "true" : "false", R"(,"held":")", held, R"(","workers":2}})", "\n");
  };
  writeWhole(folder.events(), kj::str(event(1, 7, false, "0-2,5"), event(1, 12, true, ""),
                                  event(1, 30, false, ""), event(0, 12, true, "")));
  MemberPlan plan(folder, 2);
  auto& first = KJ_ASSERT_NONNULL(plan.lossOf(1, 0));
  CHECK(first.step == 7);
  CHECK(first.epoch == 2);
  CHECK(first.slices.size() == 4);
  CHECK(KJ_ASSERT_NONNULL(plan.lossOf(1, 12)).step == 30);
  CHECK((plan.lossOf(1, 31) == nullptr));
  CHECK((plan.lossOf(0, 0) == nullptr));
  CHECK(plan.joiningAt(12).size() == 2);
  CHECK(plan.joiningAt(7).size() == 0);

  CHECK(plan.changes(2) == 4);
  CHECK(plan.changes(1) == 0);
  CHECK(plan.seats(1) == 2);
  CHECK(plan.seats(5) == 5);

  CHECK_THROWS(MemberPlan(folder, 1));

  writeWhole(folder.events(), event(1, 7, false, "3-1"));
  CHECK_THROWS(MemberPlan(folder, 2));
}

}  // namespace
}  // namespace runner
