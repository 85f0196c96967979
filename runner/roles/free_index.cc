#include "runner/roles/free_index.h"

#include "rpc/wire/peer.h"
#include "rpc/wire/proof.h"
#include "rpc/wire/running_time.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/role_names.h"
#include "runner/roles/coordinator_call.h"
#include "runner/system/version.h"

namespace runner {

uint takeIndex(const LoadedExperiment& loaded, const RoleOptions& options) {
  auto io = kj::setupAsyncIo();
  rpc::RunningTime running(io.provider->getTimer());
  auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
  auto limit = cluster.startTimeout_s * kj::SECONDS;
  rpc::Identity own{kj::str(roleWord(options.role)), options.secret, cluster.tls};
  kj::Own<rpc::Peer> peer;
  auto asked =
      callCoordinator(io, options, kj::mv(own), running, limit).then([&](CoordinatorCall call) {
        peer = kj::heap<rpc::Peer>(kj::mv(call.stream), rpc::MessageLimits());
        auto request = peer->bootstrap().castAs<Coordinator>().takeIndexRequest();
        request.setRole(options.role);
        request.setDigest(loaded.digest);
        request.setSettings(settingsToSend(loaded));
        request.setVersion(VERSION);
        return request.send().then(
            [](capnp::Response<Coordinator::TakeIndexResults>&& taken) {
              return uint(taken.getIndex());
            },
            [address = kj::mv(call.address)](kj::Exception&& e) -> uint {
              kj::throwFatalException(whyNotJoined(kj::mv(e), address));
            });
      });
  auto late =
      running.until(limit).then([&]() -> kj::Promise<uint> { return notAnswered(options, limit); });
  return asked.exclusiveJoin(kj::mv(late)).wait(io.waitScope);
}

}  // namespace runner
