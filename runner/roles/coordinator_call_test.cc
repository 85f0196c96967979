#include "runner/roles/coordinator_call.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "rpc/wire/opening.h"
#include "runner/roles/address_file.h"

namespace runner {
namespace {

TEST_CASE("callCoordinator: a file that a killed coordinator has left is read again") {
  auto io = kj::setupAsyncIo();
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/left")};
  REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
  auto any = io.provider->getNetwork().parseAddress("127.0.0.1").wait(io.waitScope);
  auto listener = any->listen();
  auto address = kj::str("127.0.0.1:", listener->getPort());

  rpc::Identity coordinator{kj::str("coordinator"), rpc::Secret::random()};
  kj::Maybe<AddressFile> file;
  file.emplace(folder, CoordinatorPlace{kj::str(address), rpc::Secret::random()});
  // Refuses the first call, and writes its own file then.
  auto serving =
      listener->accept()
          .then([&](kj::Own<kj::AsyncIoStream> stream) {
            return rpc::openAsListener(kj::mv(stream), coordinator);
          })
          .then([](kj::Own<kj::AsyncIoStream>) { FAIL("the old secret was accepted"); },
              [&](kj::Exception&&) {
                file.emplace(folder, CoordinatorPlace{kj::str(address), coordinator.secret});
              })
          .then([&]() { return listener->accept(); })
          .then([&](kj::Own<kj::AsyncIoStream> stream) {
            return rpc::openAsListener(kj::mv(stream), coordinator);
          })
          .eagerlyEvaluate(nullptr);

  RoleOptions options;
  options.folder = RunFolder{kj::str(folder.path)};
  options.meetsInFolder = true;
  rpc::RunningTime running(io.provider->getTimer());
  auto call = callCoordinator(io, options, {kj::str("worker 0")}, running, 30 * kj::SECONDS)
                  .wait(io.waitScope);
  CHECK(call.address == address);
  CHECK(call.secret.digits() == coordinator.secret.digits());
  serving.wait(io.waitScope);
}

}  // namespace
}  // namespace runner
