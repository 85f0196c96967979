#include "tools/bench/kv_case.h"

namespace tools {

kj::StringPtr KJ_STRINGIFY(Wire wire) {
  constexpr kj::StringPtr WORDS[] = {"tcp"_kj, "tls"_kj, "unix"_kj, "memory"_kj, "copy"_kj};
  return WORDS[uint(wire)];
}

rpc::Placement KvCase::placement() const {
  auto names = kj::heapArray<rpc::Key>(keys);
  uint64_t size = key_bytes / sizeof(float);
  for (auto i: kj::indices(names)) names[i] = rpc::Key{kj::str("key", i), i * size, size};
  return rpc::place(names, slice_bytes, servers, rpc::PLACEMENTS[0]);
}

rpc::Rounds KvCase::rounds() const {
  return rpc::Rounds{.workers = workers, .aggregate = workers};
}

}  // namespace tools
