#include "io/datasets/fetch.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "configs/language/failure.h"
#include "io/paths.h"

namespace io {

namespace {

// What libcurl's callbacks share. libcurl calls them through C frames, and no exception may pass
// these. An exception therefore waits here until libcurl has returned.
struct Transfer {
  int fd;
  uint64_t bytesMax;
  Progress& progress;
  kj::String what;
  uint64_t bytes = 0;
  kj::Maybe<kj::Exception> exception = nullptr;

  // Calls `step` and returns whether it did not throw.
  bool run(kj::Function<void()> step) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { step(); })) {
      if (exception == nullptr) exception = kj::mv(*e);
      return false;
    }
    return true;
  }
};

size_t onData(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  size_t bytes = size * count;
  bool fine = transfer.run([&]() {
    transfer.bytes += bytes;
    if (transfer.bytes > transfer.bytesMax) {
      configs::fail("more than ", transfer.bytesMax, " bytes came");
    }
    kj::FdOutputStream(transfer.fd).write(data, bytes);
  });
  return fine ? bytes : 0;
}

int onProgress(void* context, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(context);
  return transfer.run([&]() { transfer.progress(transfer.what, done, total); }) ? 0 : 1;
}

// In seconds: the limit for a connection, and for a transfer without progress.
constexpr long CONNECT_MAX_S = 20;
constexpr long SILENCE_MAX_S = 60;

void setOptions(CURL* curl, kj::StringPtr address, Transfer& transfer) {
  curl_easy_setopt(curl, CURLOPT_URL, address.cStr());
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  // Without this option libcurl uses SIGALRM, which other threads of the process would receive.
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_MAX_S);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, SILENCE_MAX_S);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &onData);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &onProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
}

}  // namespace

void download(kj::StringPtr address, kj::StringPtr path, uint64_t bytesMax, Progress& progress) {
  int fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) configs::fail("cannot write ", path, ": ", strerror(errno));
  kj::AutoCloseFd file(fd);
  KJ_ON_SCOPE_FAILURE(::unlink(path.cStr()));
  auto curl = curl_easy_init();
  KJ_REQUIRE(curl != nullptr, "libcurl cannot start");
  KJ_DEFER(curl_easy_cleanup(curl));
  Transfer transfer{fd, bytesMax, progress, kj::str("downloading ", baseName(address), ", bytes")};
  setOptions(curl, address, transfer);
  auto result = curl_easy_perform(curl);
  KJ_IF_MAYBE(e, transfer.exception) {
    configs::fail("cannot download ", address, ": ", e->getDescription());
  }
  if (result == CURLE_HTTP_RETURNED_ERROR) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    configs::fail("cannot download ", address, ": the server answered with HTTP status ", status);
  }
  if (result != CURLE_OK) {
    configs::fail("cannot download ", address, ": ", curl_easy_strerror(result));
  }
}

bool isAddress(kj::StringPtr source) {
  return source.startsWith("http://") || source.startsWith("https://") ||
         source.startsWith("file://");
}

}  // namespace io
