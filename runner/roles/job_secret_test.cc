#include "runner/roles/job_secret.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/command.h"

namespace runner {
namespace {

// RUNNER_SECRET_FILE names a file with this content while this object lives.
struct SecretFile {
  explicit SecretFile(kj::StringPtr content, mode_t mode = 0600)
      : path(kj::str(::getenv("TEST_TMPDIR"), "/secret")) {
    int raw;
    KJ_SYSCALL(raw = ::open(path.cStr(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    kj::AutoCloseFd file(raw);
    kj::FdOutputStream(file.get()).write(content.begin(), content.size());
    KJ_SYSCALL(::fchmod(file, mode));
    ::setenv("RUNNER_SECRET_FILE", path.cStr(), true);
  }
  ~SecretFile() {
    ::unsetenv("RUNNER_SECRET_FILE");
    ::unlink(path.cStr());
  }

  kj::String path;
};

kj::String refusal() {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([]() { secretOfUser(); })) {
    return kj::str(e->getDescription());
  }
  return kj::str();
}

bool contains(kj::StringPtr text, kj::StringPtr part) {
  return strstr(text.cStr(), part.cStr()) != nullptr;
}

TEST_CASE("secretOfUser: reads 64 digits with and without the end of a line") {
  auto digits = rpc::Secret::random().digits();
  for (auto end: {"", "\n"}) {
    SecretFile file(kj::str(digits, end));
    CHECK(secretOfUser().digits() == digits);
  }
}

TEST_CASE("secretOfUser: without the variable the secret is not set") {
  CHECK_FALSE(secretOfUser().isSet());
}

TEST_CASE("secretOfUser: refuses a file that others may read") {
  SecretFile file(rpc::Secret::random().digits(), 0640);
  CHECK(contains(refusal(), kj::str(file.path,
                                " (RUNNER_SECRET_FILE) can be read by other users; "
                                "run `chmod 600 ",
                                file.path, "`")));
}

TEST_CASE("secretOfUser: refuses a file without a valid secret, and says how to make one") {
  auto digits = rpc::Secret::random().digits();
  auto zeros = kj::str(kj::repeat('0', 64));
  for (kj::StringPtr content: {""_kj, "secret\n"_kj, digits.slice(1), zeros.asPtr()}) {
    SecretFile file(content);
    CHECK(contains(refusal(), "holds no secret of 64 hexadecimal digits; make one with"));
  }
  SecretFile longer(kj::str(digits, "0\n"));
  CHECK(contains(refusal(), "holds no secret"));
}

TEST_CASE("secretOfUser: reads a file as kubelet mounts it, through links and read-only") {
  auto digits = rpc::Secret::random().digits();
  auto volume = tests::newFolder();
  KJ_SYSCALL(::mkdir(kj::str(volume, "/..1").cStr(), 0755));
  tests::writeFile(kj::str(volume, "/..1/secret"), kj::str(digits, "\n"));
  KJ_SYSCALL(::chmod(kj::str(volume, "/..1/secret").cStr(), 0400));
  KJ_SYSCALL(::symlink("..1", kj::str(volume, "/..data").cStr()));
  KJ_SYSCALL(::symlink("..data/secret", kj::str(volume, "/secret").cStr()));
  ::setenv("RUNNER_SECRET_FILE", kj::str(volume, "/secret").cStr(), true);
  CHECK(secretOfUser().digits() == digits);
  ::unsetenv("RUNNER_SECRET_FILE");
}

TEST_CASE("secretOfUser: a missing file is named") {
  ::setenv("RUNNER_SECRET_FILE", "/nowhere/secret", true);
  CHECK(contains(refusal(), "/nowhere/secret (RUNNER_SECRET_FILE) cannot be read: No such file"));
  ::unsetenv("RUNNER_SECRET_FILE");
}

TEST_CASE("secretFromLauncher: reads one line, and nothing after it") {
  int fds[2];
  KJ_SYSCALL(::pipe2(fds, O_CLOEXEC));
  kj::AutoCloseFd toRead(fds[0]), toWrite(fds[1]);
  auto digits = rpc::Secret::random().digits();
  auto text = kj::str(digits, "\nmore");
  kj::FdOutputStream(toWrite.get()).write(text.begin(), text.size());
  CHECK(secretFromLauncher(toRead).digits() == digits);
  char rest[4];
  CHECK(::read(toRead, rest, sizeof(rest)) == 4);
  CHECK(memcmp(rest, "more", 4) == 0);
}

TEST_CASE("secretFromLauncher: a line that is not a secret is refused") {
  kj::AutoCloseFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto failure = kj::runCatchingExceptions([&]() { secretFromLauncher(nothing); });
  CHECK(contains(KJ_ASSERT_NONNULL(failure).getDescription(), "--launched is for launchers"));
}

}  // namespace
}  // namespace runner
