#include "tests/faults/roles_by_hand.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "tests/faults/failure.h"
#include "tests/text.h"

namespace tests {

namespace {

kj::Own<Command> startWithSecret(
    kj::ArrayPtr<const kj::StringPtr> words, kj::StringPtr secretFile) {
  auto secret = kj::str("RUNNER_SECRET_FILE=", secretFile);
  kj::StringPtr environment[] = {secret};
  return startByHand(words, kj::arrayPtr(environment, secretFile.size() == 0 ? 0 : 1));
}

}  // namespace

kj::Own<Command> startByHand(kj::ArrayPtr<const kj::StringPtr> words,
    kj::ArrayPtr<const kj::StringPtr> environment, kj::StringPtr program) {
  kj::Vector<kj::StringPtr> all;
  all.add(program);
  all.add("role");
  all.addAll(words);
  auto cache = cacheSetting();
  kj::Vector<kj::StringPtr> surroundings;
  surroundings.add(cache);
  surroundings.addAll(environment);
  return kj::heap<Command>(all.asPtr(), Command::Surroundings{.environment = surroundings});
}

kj::Own<Command> startRole(kj::StringPtr file, kj::StringPtr role, uint index,
    kj::StringPtr address, kj::StringPtr secretFile) {
  auto number = kj::str(index);
  kj::StringPtr words[] = {file, "--role", role, "--index", number, "--coordinator", address};
  return startWithSecret(words, secretFile);
}

kj::Own<Command> startCoordinator(
    kj::StringPtr file, kj::StringPtr folder, kj::StringPtr secretFile) {
  kj::StringPtr words[] = {file, "--role", "coordinator", "--folder", folder};
  return startWithSecret(words, secretFile);
}

void checkTrainsByHand(kj::StringPtr file, kj::StringPtr secretFile, kj::StringPtr weightsSha256) {
  auto coordinator = startCoordinator(file, newFolder(), secretFile);
  auto address = addressOf(*coordinator);
  kj::Vector<kj::Own<Command>> roles;
  for (uint i: {0, 1}) {
    roles.add(startRole(file, "server", i, address, secretFile));
    roles.add(startRole(file, "worker", i, address, secretFile));
  }
  auto ended = coordinator->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, weightsSha256));
  for (auto& role: roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 0);
}

kj::String addressOf(Command& coordinator) {
  constexpr kj::StringPtr MARK = "coordinator listens on "_kj;
  KJ_REQUIRE(coordinator.waitForErrors(MARK), coordinator.errors());
  auto errors = coordinator.errors();
  auto at =
      static_cast<const char*>(::memmem(errors.begin(), errors.size(), MARK.begin(), MARK.size()));
  kj::StringPtr rest = errors.slice(at - errors.begin() + MARK.size());
  return kj::heapString(rest.slice(0, KJ_ASSERT_NONNULL(rest.findFirst(';'))));
}

kj::String ownPlace() {
  kj::byte bytes[3];
  ssize_t n;
  KJ_SYSCALL(n = ::getrandom(bytes, sizeof(bytes), 0));
  KJ_ASSERT(n == sizeof(bytes));
  return kj::str("127.", bytes[0], ".", bytes[1], ".", 1 + bytes[2] % 250, ":7000");
}

kj::String newSecretFile(char digit) {
  auto path = kj::str(newFolder(), "/secret");
  auto secret = kj::str(kj::repeat(digit, 64));
  writeFile(path, kj::str(secret, "\n"));
  KJ_SYSCALL(::chmod(path.cStr(), 0600));
  return path;
}

}  // namespace tests
