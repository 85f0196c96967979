#include "runner/roles/job_members.h"

#include <capnp/message.h>
#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("JobMembers: counts the current workers, and knows when a change has taken effect") {
  JobMembers members(2, 3);
  CHECK(members.has(1));
  CHECK_FALSE(members.has(2));
  CHECK(members.settledAt() == 0);
  members.add({.rank = 1, .joins = false, .step = 7});
  CHECK(members.count() == 1);
  CHECK_FALSE(members.has(1));
  CHECK(members.settledAt() == 9);
  CHECK(members.havePushed(6));
  CHECK_FALSE(members.havePushed(7));
  members.add({.rank = 2, .joins = true, .step = 12});
  CHECK(members.count() == 2);
  CHECK(members.settledAt() == 12);
  CHECK(members.changes().size() == 2);
  CHECK_THROWS(members.add({.rank = 2, .joins = true, .step = 13}));
  CHECK_THROWS(members.add({.rank = 2, .joins = false, .step = 11}));
}

TEST_CASE("changeOf: returns what setChange() has stored") {
  rpc::SliceId held[] = {2, 3};
  struct Told {
    io::MemberChange change;
    kj::ArrayPtr<const rpc::SliceId> held;
  };
  Told all[] = {{{.rank = 1, .joins = true, .step = 12}, nullptr},
      {{.rank = 1, .joins = false, .step = 7, .counts = true}, held},
      {{.rank = 1, .joins = false, .step = 7, .from = 40}, nullptr}};
  for (auto& told: all) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>().initMembership();
    setChange(event, told.change, told.held);
    CHECK(changeOf(1, event) == told.change);
  }
}

TEST_CASE("rangesText: writes ranges of slices briefly, and parseRanges() reads them back") {
  uint some[] = {0, 1, 2, 3, 7, 9, 10};
  CHECK(rangesText(some) == "0-3,7,9-10");
  CHECK(KJ_ASSERT_NONNULL(parseRanges("0-3,7,9-10")) == kj::arrayPtr(some, 7));
  CHECK(rangesText(nullptr) == "");
  CHECK(KJ_ASSERT_NONNULL(parseRanges("")).size() == 0);
  for (auto wrong:
      {"3-1", "1,1", "-3", "1-", "a", "1,,2", "99999999999", "1-2-3", "0-2147483647"}) {
    CAPTURE(wrong);
    CHECK((parseRanges(wrong) == nullptr));
  }
}

TEST_CASE("lastPushesOf: finds the first step that a lost worker has not pushed completely") {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<Member::FenceWorkerResults>().initPushed(3);
  auto set = [&](uint i, uint begin, uint end, uint64_t steps) {
    list[i].setBegin(begin);
    list[i].setEnd(end);
    list[i].setSteps(steps);
  };
  auto all = [&]() {
    return KJ_MAP(run, list.asReader()) {
      return run;
    };
  };
  set(0, 4, 6, 11);
  set(1, 0, 2, 11);
  set(2, 2, 4, 10);
  auto last = lastPushesOf(all(), 6);
  CHECK(last.step == 10);
  CHECK(rangesText(last.held) == "0-1,4-5");
  set(2, 2, 4, 11);
  CHECK(lastPushesOf(all(), 6).step == 11);
  CHECK(lastPushesOf(all(), 6).held.size() == 0);
  set(2, 2, 4, 9);
  CHECK_THROWS(lastPushesOf(all(), 6));
  CHECK((lastPushesOf(nullptr, 6).step == uint64_t(kj::maxValue)));
  // A server names slices that do not exist, or that another server holds.
  set(2, 2, 4, 10);
  CHECK_THROWS(lastPushesOf(all(), 5));
  set(0, 0, 2, 11);
  CHECK_THROWS(lastPushesOf(all(), 6));
  set(0, 0, uint(kj::maxValue), 11);
  CHECK_THROWS(lastPushesOf(all(), 6));
}

}  // namespace
}  // namespace runner
