#include "io/datasets/fetch.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/io.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "configs/language/failure.h"
#include "io/paths.h"

namespace io {

namespace {

// In seconds: the limit for a connection, and for a transfer without progress.
constexpr long CONNECT_MAX_S = 20;
constexpr long SILENCE_MAX_S = 60;

constexpr long HTTP_PARTIAL_CONTENT = 206;
constexpr long HTTP_REQUEST_TIMEOUT = 408;
constexpr long HTTP_RANGE_NOT_SATISFIABLE = 416;
constexpr long HTTP_TOO_MANY_REQUESTS = 429;
constexpr long HTTP_SERVER_ERRORS = 500;  // and above

// A request for the file at an address. libcurl calls its callbacks through C frames, and no
// exception may pass these. An exception therefore waits until libcurl has returned.
class Request {
public:
  // `what` is passed to `progress`.
  Request(kj::StringPtr address, kj::String what, Progress& progress)
      : what(kj::mv(what)), progress(progress), curl(curl_easy_init()) {
    KJ_REQUIRE(curl != nullptr, "libcurl cannot start");
    set(CURLOPT_URL, address.cStr());
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_FAILONERROR, 1L);
    // Without this option libcurl uses SIGALRM, which other threads of the process would receive.
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_FILETIME, 1L);
    set(CURLOPT_CONNECTTIMEOUT, CONNECT_MAX_S);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, SILENCE_MAX_S);
    set(CURLOPT_PROTOCOLS_STR, "http,https,file");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_WRITEFUNCTION, &onData);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &onProgress);
    set(CURLOPT_XFERINFODATA, this);
  }
  ~Request() noexcept(false) {
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
  }
  KJ_DISALLOW_COPY(Request);

  void askForHead() { set(CURLOPT_NOBODY, 1L); }

  // Asks for the bytes from `offset` on if the file still has this version, and otherwise for all
  // bytes.
  void askForRest(uint64_t offset, kj::StringPtr version) {
    offset_bytes = offset;
    set(CURLOPT_RANGE, kj::str(offset, "-").cStr());
    headers = curl_slist_append(headers, kj::str("If-Range: ", version).cStr());
    set(CURLOPT_HTTPHEADER, headers);
  }

  // Passes the received bytes to `take`, which returns whether to continue. Passes on exceptions of
  // `take` and `progress`.
  CURLcode send(kj::Function<bool(kj::ArrayPtr<const kj::byte>)> take) {
    this->take = kj::mv(take);
    auto result = curl_easy_perform(curl);
    KJ_IF_MAYBE(e, exception) kj::throwFatalException(kj::mv(*e));
    return result;
  }

  // Valid after an answer has begun.
  long status() const { return number<long>(CURLINFO_RESPONSE_CODE); }
  kj::Maybe<uint64_t> contentLength() const {
    auto length = number<curl_off_t>(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    // Some servers answer a HEAD request with a size of 0.
    if (length <= 0) return nullptr;
    return uint64_t(length);
  }
  bool isWebPage() const { return header("Content-Type").startsWith("text/html"); }

  // Returns the version for RemoteFile. Prefers one that If-Range may name.
  kj::String version() const {
    auto tag = header("ETag");
    if (tag.startsWith("\"")) return tag;
    auto time = header("Last-Modified");
    if (time.size() > 0) return time;
    auto seconds = number<curl_off_t>(CURLINFO_FILETIME_T);  // of a local file
    return tag.size() == 0 && seconds >= 0 ? kj::str(seconds) : kj::mv(tag);
  }

  // Returns why it failed.
  kj::String causeOf(CURLcode result) const {
    if (result != CURLE_HTTP_RETURNED_ERROR) return kj::str(curl_easy_strerror(result));
    return kj::str("the server answered with HTTP status ", status());
  }

private:
  template <typename T>
  void set(CURLoption option, T value) {
    KJ_REQUIRE(curl_easy_setopt(curl, option, value) == CURLE_OK, "libcurl is too old", option);
  }

  template <typename T>
  T number(CURLINFO which) const {
    T value = 0;
    curl_easy_getinfo(curl, which, &value);
    return value;
  }

  kj::String header(kj::StringPtr name) const {
    curl_header* found = nullptr;
    auto result = curl_easy_header(curl, name.cStr(), 0, CURLH_HEADER, -1, &found);
    return kj::str(result == CURLHE_OK ? found->value : "");
  }

  // Calls `step` and returns its result, or false if it threw.
  bool run(kj::Function<bool()> step) {
    bool result = false;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { result = step(); })) {
      if (exception == nullptr) exception = kj::mv(*e);
    }
    return result;
  }

  static size_t onData(char* data, size_t size, size_t count, void* context) {
    auto& self = *static_cast<Request*>(context);
    auto bytes = kj::arrayPtr(data, size * count).asBytes();
    return self.run([&]() { return self.take(bytes); }) ? bytes.size() : 0;
  }

  static int onProgress(void* context, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
    auto& self = *static_cast<Request*>(context);
    bool goesOn = self.run([&]() {
      auto before = self.status() == HTTP_PARTIAL_CONTENT ? self.offset_bytes : 0;
      self.progress(self.what, before + done, total == 0 ? 0 : before + total);
      return true;
    });
    return goesOn ? 0 : 1;
  }

  kj::String what;
  Progress& progress;
  CURL* curl;
  curl_slist* headers = nullptr;
  uint64_t offset_bytes = 0;
  kj::Function<bool(kj::ArrayPtr<const kj::byte>)> take;
  kj::Maybe<kj::Exception> exception;
};

kj::String downloading(kj::StringPtr address) {
  return kj::str("downloading ", fileNameOf(address), ", bytes");
}

// Returns the beginning of a message about a failed download.
kj::String cannotDownload(kj::StringPtr address) {
  return kj::str("cannot download ", shownAddress(address), ":");
}

[[noreturn]] void failToDownload(kj::StringPtr address, kj::StringPtr cause) {
  configs::fail(cannotDownload(address), " ", cause);
}

kj::AutoCloseFd openFile(kj::StringPtr path, int flags) {
  int fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (fd < 0) configs::fail("cannot write ", path, ": ", strerror(errno));
  return kj::AutoCloseFd(fd);
}

void write(int fd, kj::ArrayPtr<const kj::byte> bytes) {
  about("the file"_kj, [&]() { writeTo(fd, bytes); });
}

constexpr kj::StringPtr WEB_PAGE = "there is a web page, not an archive"_kj;

kj::String partOf(kj::StringPtr path) {
  return kj::str(path, ".part");
}

// A download that continues after its transfer broke off.
class LongDownload {
public:
  LongDownload(const RemoteFile& file, kj::StringPtr part, Progress& progress)
      : file(file), fd(openFile(part, 0)), progress(progress) {
    struct stat status;
    KJ_SYSCALL(::fstat(fd, &status));
    bytes = status.st_size;
    // A request can name only an exact version. An ETag that begins with W is not exact.
    bool isExact = file.version.size() > 0 && !file.version.startsWith("W/");
    canGoOn = isExact && file.address.startsWith("http");
    if (!canGoOn && !isComplete()) restart();
  }
  KJ_DISALLOW_COPY(LongDownload);

  void run(Patience patience) {
    auto furthest = bytes;
    kj::uint failures = 0;
    while (!isComplete()) {
      KJ_IF_MAYBE(cause, attempt()) {
        if (bytes > furthest) failures = 0;
        furthest = kj::max(furthest, bytes);
        if (++failures == patience.attempts) {
          configs::fail("the transfer broke off ", failures, " times, the last time after ", bytes,
              " bytes (", *cause, "). Try again later");
        }
        wait(patience.pause * (1 << (failures - 1)), *cause);
      } else {
        return;
      }
    }
  }

private:
  bool isComplete() const {
    KJ_IF_MAYBE(size, file.size_bytes) return bytes == *size;
    return false;
  }

  void restart() {
    KJ_SYSCALL(::ftruncate(fd, 0));
    bytes = 0;
  }

  // Prepares for the content of an answer that has begun.
  void begin(const Request& request) {
    if (request.isWebPage()) configs::fail(WEB_PAGE);
    auto version = request.version();
    bool hasBoth = version.size() > 0 && file.version.size() > 0;
    if (hasBoth && version != file.version) {
      configs::fail("the file there has changed meanwhile. Try again");
    }
    if (request.status() != HTTP_PARTIAL_CONTENT) restart();
    KJ_SYSCALL(::lseek(fd, bytes, SEEK_SET));
  }

  // Returns null at the end of the file, or why the transfer broke off. Throws if another attempt
  // would not help.
  kj::Maybe<kj::String> attempt() {
    Request request(file.address, downloading(file.address), progress);
    if (bytes > 0 && canGoOn) request.askForRest(bytes, file.version);
    bool hasBegun = false;
    auto result = request.send([&](kj::ArrayPtr<const kj::byte> more) {
      if (!hasBegun) begin(request);
      hasBegun = true;
      write(fd, more);
      bytes += more.size();
      KJ_IF_MAYBE(size, file.size_bytes) {
        if (bytes > *size) configs::fail("more than its ", *size, " bytes arrived. Try again");
      }
      return true;
    });
    auto status = request.status();
    switch (result) {
      case CURLE_OK:
        if (file.size_bytes == nullptr || isComplete()) return nullptr;
        return kj::str("it ended early");
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_CONNECT:
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_PARTIAL_FILE:
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_GOT_NOTHING:
      case CURLE_SEND_ERROR:
      case CURLE_RECV_ERROR:
      case CURLE_HTTP2:
      case CURLE_HTTP2_STREAM:
        return request.causeOf(result);
      case CURLE_HTTP_RETURNED_ERROR:
        // The file has all bytes that the server has, or more. If the server did not state the
        // size, the file may be complete.
        if (status == HTTP_RANGE_NOT_SATISFIABLE && bytes > 0) {
          restart();
          return request.causeOf(result);
        }
        if (status == HTTP_REQUEST_TIMEOUT || status == HTTP_TOO_MANY_REQUESTS ||
            status >= HTTP_SERVER_ERRORS) {
          return request.causeOf(result);
        }
        break;
      default:
        break;
    }
    configs::fail(request.causeOf(result));
  }

  // Reports the pause to `progress`, which may interrupt it.
  void wait(kj::Duration pause, kj::StringPtr cause) {
    constexpr kj::Duration STEP = 100 * kj::MILLISECONDS;
    auto& clock = kj::systemPreciseMonotonicClock();
    auto end = clock.now() + pause;
    auto what =
        kj::str("downloading ", fileNameOf(file.address), " again soon (", cause, "), bytes");
    for (auto now = clock.now(); now < end; now = clock.now()) {
      progress(what, bytes, file.size_bytes.orDefault(0));
      // A signal ends the pause early.
      ::poll(nullptr, 0, kj::min(end - now, STEP) / kj::MILLISECONDS + 1);
    }
  }

  const RemoteFile& file;
  kj::AutoCloseFd fd;
  Progress& progress;
  bool canGoOn;
  uint64_t bytes;  // in the file
};

}  // namespace

bool isAddress(kj::StringPtr source) {
  return source.startsWith("http://") || source.startsWith("https://") ||
         source.startsWith("file://");
}

kj::String shownAddress(kj::StringPtr address) {
  auto end =
      std::find_if(address.begin(), address.end(), [](char c) { return c == '?' || c == '#'; });
  auto shown = kj::heapString(address.begin(), end - address.begin());
  auto host = strstr(shown.cStr(), "://");
  if (host == nullptr) return shown;
  host += 3;
  // A password may contain `@` as well.
  auto user = static_cast<const char*>(::memrchr(host, '@', strchrnul(host, '/') - host));
  if (user == nullptr) return shown;
  return kj::str(kj::heapString(shown.begin(), host - shown.begin()), user + 1);
}

kj::String fileNameOf(kj::StringPtr address) {
  auto shown = shownAddress(address);
  auto host = strstr(shown.cStr(), "://");
  auto name = strrchr(shown.cStr(), '/');
  bool isOnlyHost = host != nullptr && name < host + 3;
  return kj::str(name == nullptr || isOnlyHost ? "" : name + 1);
}

void download(kj::StringPtr address, kj::StringPtr path, uint64_t bytesMax, Progress& progress) {
  auto fd = openFile(path, O_TRUNC);
  KJ_ON_SCOPE_FAILURE(::unlink(path.cStr()));
  uint64_t bytes = 0;
  Request request(address, downloading(address), progress);
  auto result = about(cannotDownload(address), [&]() {
    return request.send([&](kj::ArrayPtr<const kj::byte> more) {
      bytes += more.size();
      if (bytes > bytesMax) configs::fail("more than ", bytesMax, " bytes arrived");
      write(fd, more);
      return true;
    });
  });
  if (result != CURLE_OK) failToDownload(address, request.causeOf(result));
}

RemoteFile lookUp(kj::StringPtr address, Progress& progress) {
  if (fileNameOf(address).size() == 0) failToDownload(address, "the address names no file");
  // Some servers refuse HEAD requests. From these, requests the content, and stops after the
  // header.
  for (bool isHead: {true, false}) {
    Request request(address, kj::str("asking for ", fileNameOf(address)), progress);
    if (isHead) request.askForHead();
    bool hasBegun = false;
    auto result = about(cannotDownload(address), [&]() {
      return request.send([&](kj::ArrayPtr<const kj::byte>) {
        hasBegun = true;
        return false;
      });
    });
    if (isHead && result == CURLE_HTTP_RETURNED_ERROR) continue;
    if (result != CURLE_OK && !hasBegun) failToDownload(address, request.causeOf(result));
    if (request.isWebPage()) failToDownload(address, WEB_PAGE);
    return {kj::str(address), request.version(), request.contentLength()};
  }
  KJ_UNREACHABLE;
}

void download(const RemoteFile& file, kj::StringPtr path, Progress& progress, Patience patience) {
  if (pathKind(path) == PathKind::FILE) return;
  auto part = partOf(path);
  KJ_ON_SCOPE_FAILURE(if (downloadedBytes(path) == 0)::unlink(part.cStr()));
  about(cannotDownload(file.address), [&]() { LongDownload(file, part, progress).run(patience); });
  moveIntoPlace(part, path);
}

uint64_t downloadedBytes(kj::StringPtr path) {
  struct stat status;
  for (auto& name: kj::arr(kj::str(path), partOf(path))) {
    if (::stat(name.cStr(), &status) == 0) return status.st_size;
  }
  return 0;
}

}  // namespace io
