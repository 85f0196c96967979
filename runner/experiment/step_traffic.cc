#include "runner/experiment/step_traffic.h"

#include <math.h>

namespace runner {

namespace {

// An Ethernet frame has a header of 14 bytes, and TCP and IP take 52 bytes of its contents.
constexpr double PAYLOAD_SHARE = 1448.0 / 1514;

// The bytes that one worker pushes to each shard, and the bytes of the answers.
struct ShardBytes {
  double pushed = 0;
  double answered = 0;
};

kj::Array<ShardBytes> shardBytes(const Experiment& experiment, const rpc::Placement& placement) {
  auto rounds = experiment.rounds();
  auto& codec = rounds.codec;
  auto pushes = codec.pushes(), answers = rounds.answers();
  double sent = codec.compression->sentShare();
  double summed = codec.answersSums ? 1 - pow(1 - sent, rounds.aggregate) : 1;
  double exchanges = 1.0 / experiment.kvstore.mode->stepsAlone().orDefault(1);
  return KJ_MAP(ids, placement.shards) {
    ShardBytes bytes;
    for (auto id: ids) {
      uint64_t size = placement.slices[id].size;
      bytes.pushed += exchanges * pushes.expected_bytes(size, sent);
      bytes.answered += exchanges * answers.expected_bytes(size, summed);
    }
    return bytes;
  };
}

}  // namespace

StepTraffic stepTraffic(const Experiment& experiment, const rpc::Placement& placement) {
  auto shards = shardBytes(experiment, placement);
  uint workers = experiment.cluster.workers;
  bool ownShards = experiment.kvstore.workersHoldShards();
  ShardBytes all;
  for (auto& shard: shards) {
    all.pushed += shard.pushed;
    all.answered += shard.answered;
  }
  StepTraffic traffic{};
  uint hosts = kj::max(workers, uint(shards.size()));
  for (uint host = 0; host < hosts; host++) {
    auto own = host < shards.size() ? shards[host] : ShardBytes{};
    bool hasWorker = host < workers;
    ShardBytes asWorker;
    if (hasWorker) asWorker = {all.pushed - own.pushed, all.answered - own.answered};
    double others = hasWorker ? workers - 1 : workers;
    traffic.link_bytes = kj::max(traffic.link_bytes,
        kj::max(asWorker.pushed + others * own.answered, asWorker.answered + others * own.pushed));
    double served = ownShards ? others : workers;
    traffic.shardIn_bytes = kj::max(traffic.shardIn_bytes, served * own.pushed);
    traffic.shardOut_bytes = kj::max(traffic.shardOut_bytes, served * own.answered);
    if (!hasWorker) continue;
    auto& remote = ownShards ? asWorker : all;
    traffic.pushed_bytes = kj::max(traffic.pushed_bytes, remote.pushed);
    traffic.answered_bytes = kj::max(traffic.answered_bytes, remote.answered);
  }
  return traffic;
}

double network_ms(const StepTraffic& traffic, const Links& links) {
  double bits_per_ms = links.mbit * 1e6 * PAYLOAD_SHARE / 1e3;
  return traffic.link_bytes * 8 / bits_per_ms + links.overhead_ms;
}

}  // namespace runner
