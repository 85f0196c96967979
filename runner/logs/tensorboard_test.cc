#include "runner/logs/tensorboard.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include "tests/text.h"

namespace runner {
namespace {

kj::String hex(kj::ArrayPtr<const kj::byte> bytes) {
  return kj::strArray(
      KJ_MAP(byte, bytes) { return kj::str(byte < 16 ? "0" : "", kj::hex(byte)); }, "");
}

TEST_CASE("crc32c: has the values of RFC 3720") {
  CHECK(crc32c("123456789"_kj.asBytes()) == 0xe3069283u);
  CHECK(crc32c(nullptr) == 0);
  // Appendix B.4: 32 bytes of zeros, of ones, rising and falling.
  kj::byte bytes[32] = {};
  CHECK(crc32c(bytes) == 0x8a9136aau);
  for (auto& byte: bytes) byte = 0xff;
  CHECK(crc32c(bytes) == 0x62a8ab43u);
  for (uint i = 0; i < 32; i++) bytes[i] = i;
  CHECK(crc32c(bytes) == 0x46dd794eu);
  for (uint i = 0; i < 32; i++) bytes[i] = 31 - i;
  CHECK(crc32c(bytes) == 0x113fdb5cu);
}

TEST_CASE("TensorBoard: frames and encodes a version record to the byte") {
  // 24 bytes of data: wall_time (field 1, fixed 64 bits) = 1.0, file_version (field 3, 13 bytes).
  // An independent program printed the two checksums: tests/peers/tfevents.py.
  CHECK(hex(versionRecord(1.0)) ==
        "1800000000000000"
        "a37f4b22"
        "09000000000000f03f1a0d627261696e2e4576656e743a32"
        "86bf577a");
}

TEST_CASE("TensorBoard: writes points of several curves as one record") {
  // time 2.0, step 300, and summary { value { tag "a" 0.5 } value { tag "bc" -1 } }.
  auto record = hex(scalarsRecord(2.0, 300, {{"a", 0.5f}, {"bc", -1.0f}}));
  CHECK(kj::heapString(record.slice(24, record.size() - 8)) ==
        "090000000000000040"
        "10ac02"
        "2a15"
        "0a08"
        "0a0161"
        "150000003f"
        "0a09"
        "0a026263"
        "15000080bf");
}

TEST_CASE("TensorBoard: each worker has its own folder, and their common figures have another") {
  auto folder = kj::str(::getenv("TEST_TMPDIR"), "/board");
  TensorBoard board(folder);
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.setTimeS(1500000000.75);
  event.setIndex(1);
  auto speed = event.initSpeed();
  speed.setGlobalStep(7);
  board.append(event);
  event.initTrained();
  board.append(event);
  // One copy of the workers' common figure is kept: the first one, because worker 0 may be lost.
  event.initValidated().setEpoch(1);
  board.append(event);
  event.setIndex(0);
  event.getValidated().setLoss(7);
  board.append(event);

  auto name = "/events.out.tfevents.1500000000.runner"_kj;
  auto size = [&](kj::StringPtr part) {
    return readWhole(kj::str(folder, part, name), 10000).size();
  };
  auto version = versionRecord(1500000000.75).size();
  auto points = [&](kj::ArrayPtr<const Scalar> scalars, uint step) {
    return scalarsRecord(1500000000.75, step, scalars).size();
  };
  CHECK(size("/worker-1") ==
        version +
            points({{"train/loss", 0}, {"train/accuracy", 0}, {"images_per_s", 0},
                       {"learning_rate", 0}},
                7) +
            points({{"epoch/loss", 0}, {"epoch/accuracy", 0}, {"epoch/seconds", 0}}, 0));
  auto validated = points({{"validation/loss", 0}, {"validation/accuracy", 0}}, 0);
  CHECK(size("/validation") == version + validated);
  auto whole = readWhole(kj::str(folder, "/validation", name), 10000);
  auto first = scalarsRecord(
      1500000000.75, 0, kj::arr(Scalar{"validation/loss", 0}, Scalar{"validation/accuracy", 0}));
  CHECK(whole.asBytes().slice(version, version + validated) == first.asPtr());

  auto second = event.initValidated();
  second.setEpoch(2);
  auto topK = second.initTopK();
  topK.setK(5);
  topK.setAccuracy(0.5);
  board.append(event);
  CHECK(size("/validation") == version + validated +
                                   points({{"validation/loss", 0}, {"validation/accuracy", 0},
                                              {"validation/top_5_accuracy", 0.5}},
                                       0));
}

TEST_CASE("TensorBoard: throws if a file cannot be written") {
  auto folder = kj::str(::getenv("TEST_TMPDIR"), "/no_folder");
  writeWhole(folder, "a file");
  TensorBoard board(folder);
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.initSpeed();
  CHECK_THROWS(board.append(event));
}

}  // namespace
}  // namespace runner
