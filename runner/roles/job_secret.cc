#include "runner/roles/job_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/io.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "rpc/wire/listener.h"

namespace runner {

namespace {

constexpr kj::StringPtr VARIABLE = "RUNNER_SECRET_FILE"_kj;
constexpr size_t DIGITS = 2 * rpc::Secret::BYTES;

// Text whose memory is overwritten when it is destroyed.
struct Line {
  char text[DIGITS + 2] = {};
  size_t size = 0;

  ~Line() { OPENSSL_cleanse(text, sizeof(text)); }

  // Reads until the end of the line, the end of the file, or more than a secret has.
  void read(int fd) {
    while (size <= DIGITS) {
      auto n = ::read(fd, text + size, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || text[size] == '\n') break;
      size++;
    }
    text[size] = '\0';
  }
  kj::Maybe<rpc::Secret> parse() const { return rpc::Secret::parse(kj::StringPtr(text, size)); }
};

}  // namespace

rpc::Secret secretFromLauncher(int fd) {
  Line line;
  line.read(fd);
  KJ_IF_MAYBE(secret, line.parse()) return *secret;
  configs::fail(
      "the first line of standard input is not a secret of 64 hexadecimal digits; "
      "--launched is for launchers, so leave it out");
}

rpc::Secret secretOfUser() {
  auto path = ::getenv(VARIABLE.cStr());
  if (path == nullptr || *path == '\0') return {};
  auto fail = [path](auto&&... why) { configs::fail(path, " (", VARIABLE, ") ", why...); };
  int raw = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0) {
    fail("cannot be read: ", ::strerror(errno), "; make one with `(umask 077; openssl rand -hex ",
        rpc::Secret::BYTES, " > FILE)`, and copy it to every host");
  }
  kj::AutoCloseFd file(raw);
  requirePrivate(file, path, kj::str(" (", VARIABLE, ")"));
  // Reads block again, so that a pipe is read to its end. Only opening a pipe must not wait for a
  // writer.
  ::fcntl(file, F_SETFL, 0);
  Line line;
  line.read(file);
  KJ_IF_MAYBE(secret, line.parse()) {
    if (secret->isSet()) return *secret;
  }
  fail("holds no secret of 64 hexadecimal digits; make one with `(umask 077; openssl rand -hex ",
      rpc::Secret::BYTES, " > ", path, ")`");
  KJ_UNREACHABLE;
}

void requirePrivate(int fd, kj::StringPtr path, kj::StringPtr why) {
  auto fail = [&](auto&&... words) { configs::fail(path, why, " ", words...); };
  struct stat status;
  if (::fstat(fd, &status) != 0) fail("cannot be read: ", ::strerror(errno));
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) fail("is not a file; name one");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    fail("belongs to another user, who knows what is in it; make a secret of your own");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    fail("can be read by other users; run `chmod 600 ", path, "`, and make a new secret if one of ",
        "them is a stranger");
  }
}

kj::Maybe<kj::String> whyNoSecret(kj::StringPtr host, bool tls, const rpc::Secret& secret) {
  if (secret.isSet()) return nullptr;
  bool isReached = !rpc::isLoopback(host);
  if (!isReached && !tls) return nullptr;
  auto cause = isReached ? kj::str("other machines reach ", host)
                         : kj::str("TLS takes its keys from the job's secret (cluster.tls = true)");
  return kj::str(cause, ", so the roles need a secret: make one with ",
      "`(umask 077; openssl rand -hex ", rpc::Secret::BYTES, " > FILE)`, copy it to every host, ",
      "and start every role with ", VARIABLE, "=FILE");
}

}  // namespace runner
