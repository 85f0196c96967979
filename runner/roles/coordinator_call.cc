#include "runner/roles/coordinator_call.h"

#include <kj/debug.h>

#include "rpc/wire/encryption.h"
#include "rpc/wire/opening.h"
#include "runner/logs/role_names.h"
#include "runner/roles/address_file.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

constexpr auto PAUSE = 250 * kj::MILLISECONDS;

constexpr kj::StringPtr UNKNOWN_NAME = "no machine of this name is known"_kj;

// Returns the system's message about a failed connection, without KJ's.
kj::StringPtr causeOf(const kj::Exception& e) {
  auto why = e.getDescription();
  if (why.startsWith("DNS lookup failed")) return UNKNOWN_NAME;
  KJ_IF_MAYBE(colon, why.findLast(':')) {
    if (why.startsWith("connect") && why.size() > *colon + 2) return why.slice(*colon + 2);
  }
  return why;
}

// Returns the name of the coordinator in messages.
kj::String nameOf(const RoleOptions& options) {
  return options.meetsInFolder
             ? kj::str("the coordinator whose address is in ", options.folder.address())
             : kj::str("the coordinator at ", options.coordinator);
}

class Call {
public:
  Call(kj::AsyncIoContext& io, const RoleOptions& options, rpc::Identity own,
      rpc::RunningTime& running, kj::Duration limit)
      : network(io.provider->getNetwork()),
        timer(io.provider->getTimer()),
        options(options),
        identity(kj::mv(own)),
        running(running),
        limit(limit) {}

  kj::Promise<CoordinatorCall> attempt() {
    if (options.meetsInFolder) {
      KJ_IF_MAYBE(place, readAddressFile(options.folder)) {
        address = kj::mv(place->address);
        identity.secret = place->secret.isSet() ? place->secret : options.secret;
      } else {
        return retry(KJ_EXCEPTION(DISCONNECTED, "there is no such file yet"));
      }
    }
    return network.parseAddress(address)
        .then([](kj::Own<kj::NetworkAddress> parsed) {
          auto promise = parsed->connect();
          return promise.attach(kj::mv(parsed));
        })
        .then([this](kj::Own<kj::AsyncIoStream> stream) { return open(kj::mv(stream)); },
            [this](kj::Exception&& e) { return retry(kj::mv(e)); });
  }

private:
  kj::Promise<CoordinatorCall> open(kj::Own<kj::AsyncIoStream> stream) {
    auto opened = rpc::openAsCaller(kj::mv(stream), identity, roleWord(Role::COORDINATOR));
    return opened.then(
        [this](kj::Own<kj::AsyncIoStream> stream) -> kj::Promise<CoordinatorCall> {
          return CoordinatorCall{kj::mv(stream), kj::str(address), identity.secret};
        },
        [this](kj::Exception&& e) -> kj::Promise<CoordinatorCall> {
          // A killed coordinator leaves its file. The next one may listen at the same address
          // before it has written its own.
          bool isLeftOver = options.meetsInFolder && e.getDescription() == rpc::WRONG_SECRET;
          if (isLeftOver) return retry(KJ_EXCEPTION(DISCONNECTED, rpc::WRONG_SECRET));
          return whyNotJoined(kj::mv(e), address);
        });
  }

  kj::Promise<CoordinatorCall> retry(kj::Exception e) {
    auto cause = causeOf(e);
    // Trying again is useless if a user has mistyped the name. But a system such as Kubernetes may
    // start roles before the coordinator's host has its name.
    bool mayAppear = e.getType() == kj::Exception::Type::DISCONNECTED ||
                     (cause == UNKNOWN_NAME && options.isFromEnvironment);
    if (options.launched || !mayAppear || running.passed() + PAUSE >= limit) {
      return kj::Exception(e.getType(), kj::heapString(e.getFile()), e.getLine(),
          kj::str("cannot reach ", nameOf(options), ": ", cause,
              mayAppear && !options.launched
                  ? kj::str(", for ", limit / kj::SECONDS, " s (cluster.start_timeout_s)")
                  : kj::str(),
              "; when the coordinator starts, it prints the address for --coordinator"));
    }
    if (!hasTold) tell(kj::str(identity.name, " waits for ", nameOf(options), " (", cause, ")"));
    hasTold = true;
    return timer.afterDelay(PAUSE).then([this]() { return attempt(); });
  }

  kj::Network& network;
  kj::Timer& timer;
  const RoleOptions& options;
  kj::String address = kj::str(options.coordinator);
  rpc::Identity identity;
  rpc::RunningTime& running;
  const kj::Duration limit;
  bool hasTold = false;
};

}  // namespace

kj::Promise<CoordinatorCall> callCoordinator(kj::AsyncIoContext& io, const RoleOptions& options,
    rpc::Identity own, rpc::RunningTime& running, kj::Duration limit) {
  auto call = kj::heap<Call>(io, options, kj::mv(own), running, limit);
  auto promise = kj::evalNow([&]() { return call->attempt(); });
  return promise.attach(kj::mv(call));
}

kj::Exception notAnswered(const RoleOptions& options, kj::Duration limit) {
  return kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__,
      kj::str(nameOf(options), " has not answered within ", limit / kj::SECONDS,
          " s; does a coordinator of runner listen there, or was it stopped? "
          "(cluster.start_timeout_s)"));
}

kj::StringPtr settingsToSend(const LoadedExperiment& loaded) {
  // See jobMessageLimits().
  constexpr size_t BYTES_MAX = 32768;
  return loaded.settings.size() > BYTES_MAX ? ""_kj : loaded.settings.asPtr();
}

kj::Exception whyNotJoined(kj::Exception e, kj::StringPtr address) {
  if (e.getDescription() == rpc::WRONG_SECRET) {
    return kj::Exception(e.getType(), __FILE__, __LINE__,
        kj::str("the program at ", address, " has a different secret than this role. Compare the ",
            "address with the one that the coordinator prints, and then the secret files of both ",
            "roles (RUNNER_SECRET_FILE). If one role has a secret, the other needs it, too"));
  }
  if (e.getDescription() == rpc::TLS_ONLY_THERE || e.getDescription() == rpc::TLS_ONLY_HERE) {
    bool there = e.getDescription() == rpc::TLS_ONLY_THERE;
    return kj::Exception(e.getType(), __FILE__, __LINE__,
        kj::str("the coordinator at ", address, there ? " uses" : " does not use",
            " TLS, and this role ", there ? "does not" : "does",
            " (cluster.tls): start all roles with the same file"));
  }
  if (e.getDescription() == rpc::RELAYED) {
    return kj::Exception(e.getType(), __FILE__, __LINE__,
        kj::str("somebody between this machine and the coordinator at ", address,
            " changes what they send: the TLS connection does not match the coordinator's proof"));
  }
  if (rpc::isOfOtherEnd(e)) return e;
  return kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__,
      kj::str("the program at ", address, " is not a coordinator of runner, or it has ended"));
}

}  // namespace runner
