#include "io/datasets/fetch.h"
#include "io/progress.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <kj/io.h>
#include <kj/thread.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/paths.h"
#include "io/testing/scratch.h"

namespace io {

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

TEST_CASE("download: an unknown host name is an error that leaves no file") {
  Scratch scratch;
  Progress progress = [](kj::StringPtr, uint64_t, uint64_t) {};
  auto to = scratch.path("to");
  // A part of a host name has at most 63 letters. The resolver asks no server for this one.
  auto place = kj::str("http://", kj::repeat('x', 64), ".invalid/x.gz");
  CHECK(thrownBy([&]() { download(place, to, 100, progress); }) ==
        kj::str("cannot download ", place, ": Couldn't resolve host name"));
  CHECK(::access(to.cStr(), F_OK) != 0);
}

TEST_CASE("download: the error names the status that a server answers with") {
  int server;
  KJ_SYSCALL(server = ::socket(AF_INET, SOCK_STREAM, 0));
  kj::AutoCloseFd owned(server);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto generic = reinterpret_cast<sockaddr*>(&address);
  KJ_SYSCALL(::bind(server, generic, size));
  KJ_SYSCALL(::listen(server, 1));
  KJ_SYSCALL(::getsockname(server, generic, &size));
  kj::Thread thread([&]() {
    int fd;
    KJ_SYSCALL(fd = ::accept(server, nullptr, nullptr));
    kj::AutoCloseFd client(fd);
    char request[4096];
    KJ_SYSCALL(::read(fd, request, sizeof(request)));
    kj::StringPtr answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    KJ_SYSCALL(::write(fd, answer.begin(), answer.size()));
  });
  Scratch scratch;
  Progress progress = [](kj::StringPtr, uint64_t, uint64_t) {};
  auto place = kj::str("http://127.0.0.1:", ntohs(address.sin_port), "/x.gz");
  CHECK(thrownBy([&]() { download(place, scratch.path("to"), 100, progress); }) ==
        kj::str("cannot download ", place, ": the server answered with HTTP status 404"));
}

TEST_CASE("isAddress: distinguishes addresses from paths") {
  CHECK(isAddress("https://example.org/x"));
  CHECK(isAddress("file:///x"));
  CHECK(!isAddress("/data/mnist"));
  CHECK(!isAddress("http"));
}

}  // namespace io
