#include "io/records/lmdb_file.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <lmdb.h>
#include <unistd.h>

#include <cstring>

#include "io/testing/scratch.h"

namespace io {

namespace {

// The length of the value of `key`. Some values lie beside their keys, and some fill several pages.
size_t sizeOf(uint64_t key) {
  return key % 100 == 0 ? 20000 : key % 50;
}

// Writes a database with LMDB. Every third number below `end` is a key.
void write(kj::StringPtr path, uint64_t end) {
  MDB_env* env = nullptr;
  KJ_ASSERT(mdb_env_create(&env) == MDB_SUCCESS);
  KJ_DEFER(mdb_env_close(env));
  KJ_ASSERT(mdb_env_set_mapsize(env, size_t(1) << 28) == MDB_SUCCESS);
  KJ_ASSERT(mdb_env_open(env, path.cStr(), MDB_NOSUBDIR | MDB_NOLOCK, 0666) == MDB_SUCCESS);
  MDB_txn* txn = nullptr;
  KJ_ASSERT(mdb_txn_begin(env, nullptr, 0, &txn) == MDB_SUCCESS);
  MDB_dbi dbi;
  KJ_ASSERT(mdb_dbi_open(txn, nullptr, 0, &dbi) == MDB_SUCCESS);
  for (uint64_t key = 0; key < end; key += 3) {
    auto bigEndian = __builtin_bswap64(key);
    auto bytes = kj::heapArray<kj::byte>(sizeOf(key));
    memset(bytes.begin(), key, bytes.size());
    MDB_val keyVal = {sizeof(bigEndian), &bigEndian}, value = {bytes.size(), bytes.begin()};
    KJ_ASSERT(mdb_put(txn, dbi, &keyVal, &value, 0) == MDB_SUCCESS);
  }
  KJ_ASSERT(mdb_txn_commit(txn) == MDB_SUCCESS);
}

}  // namespace

TEST_CASE("LmdbFile: finds every key that LMDB wrote, and no other") {
  Scratch scratch;
  auto path = scratch.path("x.mdb");
  for (uint64_t end: {1, 100, 30000}) {
    ::unlink(path.cStr());
    write(path, end);
    LmdbFile file(path, "lost");
    for (uint64_t i = 0; i < end + 5; ++i) {
      // In an order that often needs the page that was read last.
      uint64_t key = i * 7919 % (end + 5);
      auto value = file.find(key);
      REQUIRE((value != nullptr) == (key < end && key % 3 == 0));
      KJ_IF_MAYBE(bytes, value) {
        REQUIRE(bytes->size() == sizeOf(key));
        for (auto byte: *bytes) REQUIRE(byte == kj::byte(key));
      }
    }
  }
}

TEST_CASE("LmdbFile: an empty database has no key") {
  Scratch scratch;
  auto path = scratch.path("x.mdb");
  write(path, 0);
  LmdbFile file(path, "lost");
  CHECK(file.find(0) == nullptr);
}

TEST_CASE("LmdbFile: refuses a folder, an empty file and a file of another kind") {
  Scratch scratch;
  auto refusal = [](kj::StringPtr path) {
    return thrownBy([&]() { LmdbFile file(path, "lost"); });
  };
  scratch.write("folder/x", nullptr);
  CHECK(refusal(scratch.path("folder")) == "it is not a regular file");
  CHECK(refusal(scratch.write("empty", nullptr)) == "the file is empty");
  auto zeros = kj::heapArray<kj::byte>(10000);
  memset(zeros.begin(), 0, zeros.size());
  CHECK(
      refusal(scratch.write("zeros", zeros)) ==
      "it is not an LMDB file. If it is a file of your own, name a database or a folder of packed "
      "records instead. Otherwise it is damaged");
}

}  // namespace io
