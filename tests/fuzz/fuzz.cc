#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <kj/io.h>
#include <kj/map.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fuzz {

namespace {

// Whether the text has more than KJ_REQUIRE(condition, value): "expected condition; value = 1". A
// sentence may follow the condition: KJ_REQUIRE(condition, "the slices do not ascend", slice).
bool hasSentence(kj::StringPtr text) {
  if (!text.startsWith("expected ")) return text.size() > 0;
  const char* part = text.cStr();
  while ((part = ::strstr(part, "; ")) != nullptr) {
    part += 2;
    const char* end = ::strstr(part, "; ");
    const char* equals = ::strstr(part, " = ");
    if (equals == nullptr || (end != nullptr && end < equals)) return true;
  }
  return false;
}

void removePath(kj::StringPtr path) {
  auto disk = kj::newDiskFilesystem();
  disk->getRoot().tryRemove(disk->getCurrentPath().eval(path));
}

// A folder in memory that ends with the process.
class MemoryFolder {
public:
  MemoryFolder() {
    // A test must not write outside its own folder.
    const char* own = ::getenv("TEST_TMPDIR");
    path = kj::str(own == nullptr ? "/dev/shm" : own, "/fuzz-XXXXXX");
    KJ_REQUIRE(::mkdtemp(path.begin()) != nullptr, "cannot make a folder", path, strerror(errno));
  }
  ~MemoryFolder() noexcept(false) { removePath(path); }

  kj::String path;
  kj::HashMap<kj::String, kj::String> files;
};

MemoryFolder& memoryFolder() {
  static MemoryFolder only;
  return only;
}

}  // namespace

kj::Maybe<kj::String> refusalOf(kj::FunctionParam<void()> function) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { function(); })) {
    judge(*e);
    return kj::str(e->getDescription());
  }
  return nullptr;
}

void judge(const kj::Exception& exception) {
  // For people who want to see why an input gets no further.
  static const bool IS_VERBOSE = ::getenv("FUZZ_VERBOSE") != nullptr;
  if (IS_VERBOSE) KJ_LOG(WARNING, exception.getDescription());
  if (hasSentence(exception.getDescription())) return;
  KJ_LOG(FATAL, "no sentence that says what is wrong", exception);
  ::abort();
}

void must(bool isTrue, kj::StringPtr what) {
  if (isTrue) return;
  KJ_LOG(FATAL, "this must hold", what);
  ::abort();
}

void feedOne(Bytes input) {
  // A separate copy, so that the sanitizer sees reads beyond its end.
  auto copy = kj::heapArray(input);
  refusalOf([&]() { feed(copy); });
}

kj::StringPtr folder() {
  return memoryFolder().path;
}

void removeFolder(kj::StringPtr name) {
  removePath(kj::str(folder(), "/", name));
}

kj::StringPtr fileOf(kj::StringPtr name, Bytes content) {
  auto& files = memoryFolder().files;
  auto& path = files.findOrCreate(name, [&]() {
    return kj::HashMap<kj::String, kj::String>::Entry{
        kj::str(name), kj::str(memoryFolder().path, "/", name)};
  });
  // A new file, because the old one may still be mapped.
  ::unlink(path.cStr());
  int raw = ::open(path.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  KJ_REQUIRE(raw >= 0, "cannot make a file", path, strerror(errno));
  kj::AutoCloseFd fd(raw);
  kj::FdOutputStream(fd.get()).write(content.begin(), content.size());
  return path;
}

kj::Array<kj::byte> contentOf(kj::StringPtr path) {
  auto disk = kj::newDiskFilesystem();
  return disk->getRoot().openFile(disk->getCurrentPath().eval(path))->readAllBytes();
}

uint8_t Dice::byte() {
  return number(1);
}

uint64_t Dice::number(uint bytes) {
  uint64_t result = 0;
  auto taken = take(bytes);
  for (auto i: kj::indices(taken)) result |= uint64_t(taken[i]) << (8 * i);
  return result;
}

uint64_t Dice::near(uint64_t count) {
  uint8_t first = byte();
  if (first == 255) return number(8);
  return count == 0 ? 0 : first % count;
}

Bytes Dice::take(size_t bytes) {
  size_t taken = kj::min(bytes, rest.size());
  auto result = rest.slice(0, taken);
  rest = rest.slice(taken, rest.size());
  return result;
}

void edit(kj::ArrayPtr<kj::byte> bytes, Dice& dice) {
  while (!dice.isEmpty()) {
    size_t place = dice.number(2);
    for (auto byte: dice.take(dice.byte() % 8)) {
      if (place < bytes.size()) bytes[place++] = byte;
    }
  }
}

}  // namespace fuzz
