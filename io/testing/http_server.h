// io/testing/http_server.h: an HTTP server of one file, for tests of downloads.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/mutex.h>
#include <kj/string.h>
#include <kj/thread.h>
#include <kj/vector.h>

#include <cstdint>

namespace io {

// The file that the server has, and how it answers.
struct ServedFile {
  kj::Array<kj::byte> bytes;
  kj::String tag;   // the ETag with its quotes, or empty
  kj::String time;  // Last-Modified, or empty
  kj::StringPtr type = "application/x-tar"_kj;
  kj::Maybe<uint64_t> size_bytes;  // the size that it claims, if not that of `bytes`
  bool saysSize = true;            // whether it claims any
  bool sendsHeads = true;          // whether it answers HEAD
  bool sendsParts = true;          // whether it answers Range
  kj::uint status = 200;           // other than 200: the answer to everything
};

// Serves the file at every path, on a port of 127.0.0.1, one connection after another.
class HttpServer {
public:
  explicit HttpServer(ServedFile file);
  ~HttpServer() noexcept(false);
  KJ_DISALLOW_COPY(HttpServer);

  kj::String address(kj::StringPtr name) const;

  void change(ServedFile file);
  // Cuts off the next connections that transfer content, each after the given number of bytes.
  void cutAfter(kj::ArrayPtr<const uint64_t> counts);
  // Stops the next content after the given number of bytes, and waits until the client closes the
  // connection.
  void stallAfter(uint64_t count);
  // Answers the next requests for content with HTTP status 503.
  void refuse(kj::uint requests);
  // Closes the port.
  void stop();

  // Returns the requests so far, such as "HEAD, GET, GET from 100".
  kj::String requests() const;

private:
  struct State {
    ServedFile file;
    kj::Vector<uint64_t> cuts;  // the last one comes first
    bool stalls = false;
    kj::uint refusals = 0;
    kj::Vector<kj::String> requests;
  };

  void serve();
  void answer(int client);

  kj::AutoCloseFd listener;
  kj::uint port;
  kj::MutexGuarded<State> state;
  kj::Maybe<kj::Own<kj::Thread>> thread;
};

}  // namespace io
