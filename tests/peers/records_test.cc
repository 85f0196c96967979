// A program that shares no code with ours reads a record database by its description.
#include <doctest/doctest.h>
#include <kj/encoding.h>

#include "io/checksum.h"
#include "io/records/record_db.h"
#include "io/testing/scratch.h"
#include "tests/command.h"
#include "tests/peers/python.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr int NO_LMDB = 77;

TEST_CASE("a Python program reads a record database by its description") {
  io::Scratch scratch;
  auto path = scratch.path("training.mdb");
  auto writer = io::RecordWriter::create(path);
  kj::Vector<kj::String> labels, ids, payloads, paths;
  auto add = [&](uint32_t label, io::Encoding encoding, kj::ArrayPtr<const kj::byte> bytes) {
    uint64_t id = 3 * writer->count();
    auto source = kj::str("cat/", id, ".jpg");
    writer->add(label, id, encoding, {3, 2, 4}, bytes, source);
    labels.add(kj::str(label));
    ids.add(kj::str(id));
    payloads.add(kj::str('"', io::sha256Hex(bytes).slice(0, 8), '"'));
    paths.add(kj::str('"', source, '"'));
  };
  kj::byte pixels[3 * 2 * 4];
  for (uint i = 0; i < 300; ++i) {
    for (auto& value: pixels) value = i;
    add(i % 7, io::Encoding::RAW, pixels);
  }
  // A payload with separate pages.
  auto large = kj::heapArray<kj::byte>(20000);
  for (auto i: kj::indices(large)) large[i] = i * 7;
  add(9, io::Encoding::JPEG, large);
  auto names = kj::arr(kj::str("cat"), kj::str("tiger cat"));
  writer->finish({"image_folder", names, "source: x\nencoding: raw"});

  auto command = Command({python(), "tests/peers/read_records.py", path}).wait();
  if (command.exitCode == NO_LMDB) SKIP_CASE("no Python with lmdb (RUNNER_PYTHON can name one)");
  INFO(command.errors);
  REQUIRE(command.exitCode == 0);
  auto db = io::RecordDb::open(path);
  auto list = [](kj::ArrayPtr<const kj::String> each) {
    return kj::str("[", kj::strArray(each, ", "), "]");
  };
  CHECK(command.output ==
        kj::str("{\"count\": 301, \"classes\": 10, \"shape\": [3, 2, 4], \"sha256\": \"",
            kj::encodeHex(db->digest()),
            "\", \"dataset\": \"image_folder\", \"class_names\": [\"cat\", \"tiger cat\"], "
            "\"origin\": \"source: x\\nencoding: raw\", \"labels\": ",
            list(labels), ", \"ids\": ", list(ids), ", \"payloads\": ", list(payloads),
            ", \"paths\": ", list(paths), "}\n"));
}

}  // namespace
}  // namespace tests
