#include "runner/roles/shard_saver.h"

#include <doctest/doctest.h>
#include <kj/async-io.h>

#include "rpc/testing/test_model.h"

namespace runner {
namespace {

// Takes no part of a checkpoint.
class RefusingSession final: public Session::Server {
public:
  explicit RefusingSession(kj::Exception::Type type): type(type) {}

  kj::Promise<void> savePart(SavePartContext) override {
    return kj::Exception(type, __FILE__, __LINE__, kj::str("no memory"));
  }

private:
  const kj::Exception::Type type;
};

// Records how the role has failed.
class TestMembership final: public Membership {
public:
  explicit TestMembership(kj::Exception::Type type): seat(kj::heap<RefusingSession>(type)) {}

  Session::Client session() override { return seat; }
  bool continues() const override { return false; }
  bool enters() const override { return false; }
  rpc::Listener& listener() override { KJ_UNIMPLEMENTED("not needed"); }
  rpc::Identity identity() const override { KJ_UNIMPLEMENTED("not needed"); }
  kj::Promise<void> ended() override { return kj::NEVER_DONE; }
  void fail(kj::Exception&& e) override { failures.add(kj::mv(e)); }
  kj::Promise<kj::String> tellFailure(const kj::Exception&) override { return kj::String(); }
  kj::Duration clockAhead() const override { return 0 * kj::NANOSECONDS; }

  kj::Vector<kj::Exception> failures;

private:
  Session::Client seat;
};

TEST_CASE("ShardSaver: a role that cannot send its shard fails, so that nobody waits for it") {
  auto io = kj::setupAsyncIo();
  auto placement = rpc::placeBalanced(rpc::makeKeys({2}), 4096, 1);
  rpc::TestUpdater updater(1);
  rpc::Shard shard(placement, 0, rpc::roundsOf("dist_sync", 1), updater);
  float values[2] = {1, 2};
  shard.initialize(0, values);
  TestMembership membership(kj::Exception::Type::FAILED);
  ShardSaver saver(shard, 0);
  saver.begin(membership).wait(io.waitScope);
  saver.save(3);
  io.waitScope.poll();
  REQUIRE(membership.failures.size() == 1);
  CHECK(membership.failures[0].getDescription() == "no memory");
}

}  // namespace
}  // namespace runner
