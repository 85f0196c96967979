#include "io/datasets/fetch.h"
#include "io/progress.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/paths.h"
#include "io/testing/http_server.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

namespace {}  // namespace

TEST_CASE("download: copies the file at an address, and reports progress") {
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

TEST_CASE("download: a file that is absent or too large is an error, and leaves no file") {
  Scratch scratch;
  Progress progress = unheard();
  auto to = scratch.path("to");
  auto none = kj::str("file://", scratch.path("none"));
  CHECK(thrownBy([&]() { download(none, to, 100, progress); }) ==
        kj::str("cannot download ", none, ": Couldn't read a file:// file"));
  CHECK(::access(to.cStr(), F_OK) != 0);
  auto from = kj::str("file://", scratch.write("from", kj::StringPtr("twelve bytes").asBytes()));
  CHECK(thrownBy([&]() { download(from, to, 11, progress); }) ==
        kj::str("cannot download ", from, ": more than 11 bytes arrived"));
  CHECK(::access(to.cStr(), F_OK) != 0);
}

TEST_CASE("download: an unknown host name is an error that leaves no file") {
  Scratch scratch;
  Progress progress = unheard();
  auto to = scratch.path("to");
  // A part of a host name has at most 63 letters. The resolver asks no server for this one.
  auto place = kj::str("http://", kj::repeat('x', 64), ".invalid/x.gz");
  CHECK(thrownBy([&]() { download(place, to, 100, progress); }) ==
        kj::str("cannot download ", place, ": Couldn't resolve host name"));
  CHECK(::access(to.cStr(), F_OK) != 0);
}

TEST_CASE("download: the error names the status that a server answers with") {
  HttpServer server({.status = 404});
  Scratch scratch;
  Progress progress = unheard();
  auto place = server.address("x.gz");
  CHECK(thrownBy([&]() { download(place, scratch.path("to"), 100, progress); }) ==
        kj::str("cannot download ", place, ": the server answered with HTTP status 404"));
}

namespace {

constexpr kj::StringPtr FIRST = "\"first\""_kj, SECOND = "\"second\""_kj;

kj::Array<kj::byte> someBytes(size_t count = 300'000) {
  auto bytes = kj::heapArray<kj::byte>(count);
  for (size_t i = 0; i < count; i++) bytes[i] = i * 7 + i / 251;
  return bytes;
}

ServedFile served(kj::StringPtr tag = FIRST) {
  return {.bytes = someBytes(), .tag = kj::str(tag)};
}

// Downloads from a server.
struct Client {
  explicit Client(HttpServer& server): server(server) {}

  RemoteFile file() { return lookUp(server.address("x.tar?key=1"), progress); }
  void get(const RemoteFile& file) { download(file, to, progress, patience); }
  kj::Array<kj::byte> content() { return readFile(to, 1 << 20); }
  kj::Array<kj::byte> part() { return readFile(kj::str(to, ".part"), 1 << 20); }

  HttpServer& server;
  Scratch scratch;
  kj::String to = scratch.path("to");
  uint64_t told = 0, toldAtFirst = 0;
  Progress progress = [this](kj::StringPtr what, uint64_t done, uint64_t) {
    if (toldAtFirst == 0) toldAtFirst = done;
    told = done;
  };
  Patience patience = {.attempts = 3, .pause = 1 * kj::MILLISECONDS};
};

}  // namespace

TEST_CASE("lookUp: returns size and version without a download") {
  HttpServer server(served());
  Client client(server);
  auto file = client.file();
  CHECK(file.version == FIRST);
  CHECK(KJ_ASSERT_NONNULL(file.size_bytes) == 300'000);
  CHECK(server.requests() == "HEAD");
  // Only an exact ETag can name a version in a later request.
  constexpr kj::StringPtr TIME = "Wed, 21 Oct 2015 07:28:00 GMT"_kj;
  server.change({.bytes = someBytes(), .tag = kj::str("W/", FIRST), .time = kj::str(TIME)});
  CHECK(client.file().version == TIME);
  server.change({.bytes = someBytes(), .saysSize = false});
  file = client.file();
  CHECK(file.version == "");
  CHECK(file.size_bytes == nullptr);
}

TEST_CASE("lookUp: asks with GET if the server refuses HEAD") {
  auto file = served();
  file.sendsHeads = false;
  HttpServer server(kj::mv(file));
  Client client(server);
  CHECK(client.file().version == FIRST);
  CHECK(server.requests() == "HEAD, GET");
}

TEST_CASE("lookUp: an address without an archive is an error") {
  HttpServer server({.bytes = someBytes(10), .type = "text/html; charset=utf-8"_kj});
  Progress progress = unheard();
  auto refusal = [&](kj::StringPtr address) {
    return thrownBy([&]() { lookUp(address, progress); });
  };
  auto place = server.address("login");
  CHECK(refusal(kj::str(place, "?password=1")) ==
        kj::str("cannot download ", place, ": there is a web page, not an archive"));
  CHECK(refusal(server.address("")) ==
        kj::str("cannot download ", server.address(""), ": the address names no file"));
  server.change({.status = 403});
  CHECK(refusal(place) ==
        kj::str("cannot download ", place, ": the server answered with HTTP status 403"));
  server.stop();
  CHECK(refusal(place) == kj::str("cannot download ", place, ": Couldn't connect to server"));
}

TEST_CASE("download: continues where a transfer broke off") {
  HttpServer server(served());
  Client client(server);
  // Four times in a row, but never without another byte.
  server.cutAfter({1000, 2000, 3000, 4000});
  server.refuse(2);
  client.get(client.file());
  CHECK(client.content() == someBytes());
  CHECK(client.told == 300'000);
  CHECK(server.requests() ==
        "HEAD, GET, GET, GET, GET from 1000, GET from 3000, GET from 6000, GET from 10000");
}

TEST_CASE("download: begins again if the server sends only whole files or names no version") {
  for (bool hasVersion: {false, true}) {
    auto file = served(hasVersion ? FIRST : ""_kj);
    file.sendsParts = false;
    HttpServer server(kj::mv(file));
    Client client(server);
    server.cutAfter({1000});
    client.get(client.file());
    CHECK(client.content() == someBytes());
    CHECK(server.requests() == (hasVersion ? "HEAD, GET, GET from 1000" : "HEAD, GET, GET"));
  }
}

TEST_CASE("download: does not need to know the size") {
  auto file = served();
  file.saysSize = false;
  HttpServer server(kj::mv(file));
  Client client(server);
  client.get(client.file());
  CHECK(client.content() == someBytes());
  // An earlier call had all bytes, but could not know that.
  client.scratch.write("more.part", someBytes());
  download(client.file(), client.scratch.path("more"), client.progress, client.patience);
  CHECK(readFile(client.scratch.path("more"), 1 << 20) == someBytes());
  CHECK(server.requests() == "HEAD, GET, HEAD, GET from 300000, GET");
}

TEST_CASE("download: gives up after several attempts, and a later call continues") {
  HttpServer server(served());
  Client client(server);
  auto file = client.file();
  server.cutAfter({1000, 0, 0, 0});
  CHECK(
      thrownBy([&]() { client.get(file); }) ==
      kj::str("cannot download ", server.address("x.tar"),
          ": the transfer broke off 3 times, the last time after 1000 bytes (Transferred a partial "
          "file). Try again later"));
  CHECK(client.part() == someBytes(1000));
  client.toldAtFirst = 0;
  client.get(file);
  CHECK(client.content() == someBytes());
  CHECK(client.toldAtFirst >= 1000);
  auto requests = server.requests();
  CHECK(requests.endsWith("GET from 1000"));
  // It is there.
  client.get(file);
  CHECK(server.requests() == requests);
}

TEST_CASE("download: never joins parts of two versions") {
  HttpServer server(served());
  Client client(server);
  auto file = client.file();
  server.cutAfter({1000, 0, 0, 0});
  CHECK(thrownBy([&]() { client.get(file); }) != "");
  server.change(served(SECOND));
  CHECK(thrownBy([&]() { client.get(file); }) ==
        kj::str("cannot download ", server.address("x.tar"),
            ": the file there has changed meanwhile. Try again"));
  CHECK(server.requests().endsWith("GET from 1000"));
  CHECK(pathKind(client.to) == PathKind::NOTHING);
}

TEST_CASE("download: does not try again after HTTP status 404, and leaves no empty file") {
  HttpServer server(served());
  Client client(server);
  auto file = client.file();
  server.change({.status = 404});
  CHECK(
      thrownBy([&]() { client.get(file); }) == kj::str("cannot download ", server.address("x.tar"),
                                                   ": the server answered with HTTP status 404"));
  CHECK(server.requests() == "HEAD, GET");
  CHECK(pathKind(kj::str(client.to, ".part")) == PathKind::NOTHING);
}

TEST_CASE("download: an exception from the progress callback ends the pause between attempts") {
  HttpServer server(served());
  Client client(server);
  auto file = client.file();
  server.stop();
  client.patience.pause = 1 * kj::HOURS;
  client.progress = [](kj::StringPtr what, uint64_t, uint64_t) {
    if (tests::contains(what, "again soon (Couldn't connect to server)")) configs::fail("enough");
  };
  CHECK(tests::contains(thrownBy([&]() { client.get(file); }), ": enough"));
}

TEST_CASE("fileNameOf and shownAddress: leave out queries and passwords") {
  CHECK(fileNameOf("https://example.org/a/train.tar?key=x/y#z") == "train.tar");
  CHECK(fileNameOf("https://example.org") == "");
  CHECK(fileNameOf("https://example.org/a/") == "");
  CHECK(shownAddress("https://me:secret@example.org/a@b?key=x") == "https://example.org/a@b");
  CHECK(shownAddress("https://me:p@ss@example.org/a@b") == "https://example.org/a@b");
  CHECK(shownAddress("https://example.org/a@b") == "https://example.org/a@b");
}

TEST_CASE("isAddress: distinguishes addresses from paths") {
  CHECK(isAddress("https://example.org/x"));
  CHECK(isAddress("file:///x"));
  CHECK(!isAddress("/data/mnist"));
  CHECK(!isAddress("http"));
}

}  // namespace io
