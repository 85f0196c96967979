// Calls of workers to a server of the store, in any order and with any values.
#include <kj/vector.h>

#include "rpc/testing/test_server.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

struct Mode {
  kj::StringPtr name;
  kj::StringPtr keys;
};
constexpr Mode MODES[] = {
    {"dist_sync"_kj, ""_kj},
    {"dist_sync"_kj, "update = 'worker'"_kj},
    {"dist_sync"_kj, "aggregate = 1"_kj},
    {"dist_sync"_kj, "aggregate = 3\naggregate_from = 'any'"_kj},
    {"dist_sync"_kj, "compression = { kind = '2bit', threshold = 0.5 }"_kj},
    {"dist_sync"_kj, "compression = { kind = 'topk', sparsity = 0.5 }\nupdate = 'worker'"_kj},
    {"dist_sync"_kj, "wire = 'float16'"_kj},
    {"dist_async"_kj, ""_kj},
    {"dist_async"_kj, "staleness_aware = true"_kj},
    {"dist_ssp"_kj, "staleness = 1"_kj},
    {"dc_asgd"_kj, ""_kj},
    {"easgd"_kj, ""_kj},
    {"local_sgd"_kj, ""_kj},
    {"allreduce"_kj, ""_kj},
};
constexpr uint WORKERS = 2;

// Read once, because that takes longer than most inputs.
const rpc::Rounds& roundsOf(size_t mode) {
  static const auto ALL = KJ_MAP(row, MODES) {
    return rpc::roundsOf(row.name, WORKERS, row.keys);
  };
  return ALL[mode];
}

const rpc::Placement& placement() {
  static const auto PLACEMENT = rpc::placeBalanced(rpc::makeKeys({20, 3, 1}), 32, 1);
  return PLACEMENT;
}

struct Server {
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  const rpc::Rounds& rounds;
  rpc::TestUpdater updater{1};
  rpc::ShardService::Client service;
  kj::Vector<rpc::ShardSession::Client> sessions;
  kj::Vector<kj::Promise<void>> calls;

  explicit Server(const rpc::Rounds& rounds)
      : rounds(rounds), service(rpc::newShardServer(placement(), 0, rounds, updater).service) {}
  ~Server() noexcept(false) { calls.clear(); }

  template <typename Promise>
  void add(Promise&& call) {
    calls.add(
        call.then([](auto&&) {}, [](kj::Exception&& e) { judge(e); }).eagerlyEvaluate(nullptr));
  }

  // Writes to an entry of a call: values that have the right size more often than not.
  void fill(rpc::SliceFloats::Builder entry, uint64_t id, Dice& dice) {
    entry.setSlice(id);
    uint8_t choice = dice.byte();
    if (choice % 4 == 0) {
      entry.setFloats(dice.take(choice));
    } else {
      uint64_t size =
          id < placement().slices.size() ? placement().slices[id].size * sizeof(float) : 4;
      memset(entry.initFloats(size).begin(), choice, size);
    }
  }

  void call(Dice& dice) {
    uint8_t method = dice.byte() % 8;
    if (method == 0 || sessions.empty()) {
      auto request = service.helloRequest();
      request.setRank(dice.near(WORKERS));
      uint8_t wrong = dice.byte();
      request.setWorkers(wrong == 1 ? dice.near(9) : WORKERS);
      request.setMode(wrong == 2 ? kj::str(dice.take(5).asChars()) : kj::str(rounds));
      request.setPlacement(wrong == 3 ? dice.number(8) : placement().digest());
      request.setShard(wrong == 4 ? dice.near(2) : 0);
      auto response = request.send();
      sessions.add(response.getSession());
      return add(kj::mv(response));
    }
    auto& session = sessions[dice.near(sessions.size()) % sessions.size()];
    switch (method) {
      case 1: {
        auto request = session.initializeRequest();
        auto values = request.initValues(dice.byte() % 8);
        uint64_t next = dice.near(placement().slices.size());
        for (auto entry: values) fill(entry, next++, dice);
        return add(request.send());
      }
      case 2:
        return add(session.startRequest().send());
      case 3: {
        auto request = session.pullRequest();
        auto slices = request.initSlices(dice.byte() % 8);
        uint64_t next = dice.near(placement().slices.size());
        for (auto i: kj::indices(slices)) slices.set(i, next++);
        return add(request.send());
      }
      case 4: {
        auto request = session.pushPullRequest();
        request.setStep(dice.near(4));
        auto gradients = request.initGradients(dice.byte() % 8);
        uint64_t next = dice.near(placement().slices.size());
        for (auto entry: gradients) fill(entry, next++, dice);
        return add(request.send());
      }
      case 5: {
        auto request = session.restRequest();
        request.setNumber(dice.near(4));
        return add(request.send());
      }
      case 6:
        add(session.watchRequest().send());
        return add(session.shareRequest().send());
      case 7:
        return add(service.countsRequest().send());
    }
  }
};

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  Server server(roundsOf(dice.byte() % kj::size(MODES)));
  while (!dice.isEmpty()) {
    server.call(dice);
    if (dice.byte() % 4 > 0) server.scope.poll();
  }
  server.scope.poll();
}

}  // namespace fuzz
