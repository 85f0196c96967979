#include "tools/bench/kv_case.h"

#include <kj/debug.h>

namespace tools {
namespace {

constexpr kj::StringPtr WIRE_WORDS[WIRES] = {"tcp"_kj, "unix"_kj, "memory"_kj, "copy"_kj};
constexpr kj::StringPtr ROLE_WORDS[] = {"worker"_kj, "server"_kj, "probe"_kj, "echo"_kj};

template <size_t n>
uint indexOf(const kj::StringPtr (&words)[n], kj::StringPtr word) {
  for (uint i = 0; i < n; ++i) {
    if (words[i] == word) return i;
  }
  KJ_FAIL_REQUIRE("an unknown word", word);
}

}  // namespace

kj::StringPtr KJ_STRINGIFY(Wire wire) {
  return WIRE_WORDS[uint(wire)];
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

kj::Array<kj::String> wordsOf(const KvRole& role) {
  auto& c = role.kvCase;
  return kj::arr(kj::str(ROLE_WORDS[role.what]), kj::str(role.index), kj::str(role.wire),
      kj::str(c.key_bytes), kj::str(c.keys), kj::str(c.workers), kj::str(c.servers),
      kj::str(c.slice_bytes), kj::str(uint(c.sgd)));
}

KvRole readRole(kj::ArrayPtr<const kj::StringPtr> words) {
  KJ_REQUIRE(words.size() == 9, "a role takes nine words; `bench kvstore` starts it");
  return KvRole{
      .what = KvRole::What(indexOf(ROLE_WORDS, words[0])),
      .index = words[1].parseAs<uint>(),
      .wire = Wire(indexOf(WIRE_WORDS, words[2])),
      .kvCase = {.key_bytes = words[3].parseAs<uint64_t>(),
          .keys = words[4].parseAs<uint>(),
          .workers = words[5].parseAs<uint>(),
          .servers = words[6].parseAs<uint>(),
          .slice_bytes = words[7].parseAs<uint64_t>(),
          .sgd = words[8] == "1"},
  };
}

kj::String KJ_STRINGIFY(const KvRole& role) {
  return kj::str(ROLE_WORDS[role.what], ' ', role.index, " (", role.wire, ")");
}

}  // namespace tools
