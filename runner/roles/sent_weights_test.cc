#include "runner/roles/sent_weights.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/logs/run_folder.h"
#include "runner/system/files.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

struct TestFile {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  RunFolder folder;
  kj::Vector<kj::String> failures;
  kj::Own<SentWeights> file;

  explicit TestFile(kj::StringPtr name) {
    folder.path = kj::str(::getenv("TEST_TMPDIR"), "/", name);
    REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
    file = kj::heap<SentWeights>(Part::BEST, folder.best(), 100,
        [this](kj::StringPtr reason) { failures.add(kj::str(reason)); });
  }

  void take(uint64_t total, uint64_t offset, kj::StringPtr text) {
    capnp::MallocMessageBuilder message;
    auto piece = message.initRoot<Session::SavePartParams>();
    piece.setPart(Part::BEST);
    piece.setTotal(total);
    piece.setOffset(offset);
    piece.setBytes(text.asBytes());
    file->take(piece);
  }
  void take(kj::StringPtr text) { take(text.size(), 0, text); }
  void finish() { file->finish().wait(io.waitScope); }
  kj::String written() const { return readWhole(folder.best(), 1000); }
};

TEST_CASE("SentWeights: the file has the newest weights, even if they arrived during a write") {
  TestFile test("newest");
  test.finish();
  CHECK(::access(test.folder.best().cStr(), F_OK) != 0);
  test.take(9, 0, "epo");
  test.take(9, 3, "ch one");
  test.take("epoch two");
  test.take("epoch three");
  test.finish();
  CHECK(test.written() == "epoch three");
  CHECK(test.failures.size() == 0);
}

TEST_CASE("SentWeights: a file that could not be written is written at the end") {
  TestFile test("later");
  REQUIRE(::mkdir(test.folder.best().cStr(), 0777) == 0);
  test.take("the weights");
  while (test.failures.size() == 0)
    test.io.provider->getTimer().afterDelay(0 * kj::SECONDS).wait(test.io.waitScope);
  CHECK(contains(test.failures[0], test.folder.best()));
  REQUIRE(::rmdir(test.folder.best().cStr()) == 0);
  test.finish();
  CHECK(test.written() == "the weights");
}

TEST_CASE("SentWeights: throws at the end if the file still cannot be written") {
  TestFile test("never");
  REQUIRE(::mkdir(test.folder.best().cStr(), 0777) == 0);
  test.take("the weights");
  CHECK_THROWS(test.finish());
  CHECK(test.failures.size() == 2);
}

TEST_CASE("SentWeights: refuses pieces that do not fit") {
  TestFile test("pieces");
  CHECK_THROWS(test.take(101, 0, "too large"));
  test.take(20, 0, "the first");
  CHECK_THROWS(test.take(20, 0, "the first"));
  CHECK_THROWS(test.take(20, 12, "not next"));
  CHECK_THROWS(test.take(20, 9, "longer than the file"));
}

}  // namespace
}  // namespace runner
