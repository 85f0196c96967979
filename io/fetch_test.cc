#include "io/fetch.h"

#include <doctest/doctest.h>
#include <kj/filesystem.h>
#include <unistd.h>

#include "io/paths.h"
#include "io/scratch.h"

namespace io {

TEST_CASE("download: copies what stands at an address, and reports progress") {
  Scratch scratch;
  auto from = scratch.write("from", kj::StringPtr("twelve bytes").asBytes());
  auto to = scratch.path("to");
  uint64_t seen = 0;
  kj::String what;
  Progress progress = [&](kj::StringPtr w, uint64_t done, uint64_t) {
    what = kj::str(w);
    seen = kj::max(seen, done);
  };
  download(kj::str("file://", from), to, 12, progress);
  CHECK(kj::heapString(readFile(to, 100).asChars()) == "twelve bytes");
  CHECK(seen == 12);
  CHECK(what == "downloading from, bytes");
}

TEST_CASE("download: what is not there, or too large, is an error that leaves no file") {
  Scratch scratch;
  Progress progress = [](kj::StringPtr, uint64_t, uint64_t) {};
  auto to = scratch.path("to");
  auto none = kj::str("file://", scratch.path("none"));
  CHECK(thrownBy([&]() { download(none, to, 100, progress); }) ==
        kj::str("cannot download ", none, ": Couldn't read a file:// file"));
  CHECK(::access(to.cStr(), F_OK) != 0);
  auto from = kj::str("file://", scratch.write("from", kj::StringPtr("twelve bytes").asBytes()));
  CHECK(thrownBy([&]() { download(from, to, 11, progress); }) ==
        kj::str("cannot download ", from, ": more than 11 bytes came"));
  CHECK(::access(to.cStr(), F_OK) != 0);
}

TEST_CASE("isAddress: tells addresses from paths") {
  CHECK(isAddress("https://example.org/x"));
  CHECK(isAddress("file:///x"));
  CHECK(!isAddress("/data/mnist"));
  CHECK(!isAddress("http"));
}

}  // namespace io
