#include "runner/system/line_stream.h"

#include <kj/vector.h>

namespace runner {

namespace {

// A writer must not make this process use memory without limit.
constexpr size_t LINE_BYTES_MAX = 16 << 20;

// The state of one readLines().
struct LineReader {
  kj::AsyncInputStream& input;
  kj::Function<void(kj::StringPtr)> take;
  kj::Maybe<kj::Function<kj::Promise<void>()>> allTaken;
  kj::Array<char> buffer = kj::heapArray<char>(65536);
  kj::Vector<char> pending = {};  // the beginning of a line whose end has not arrived

  kj::Promise<void> readOn() {
    return input.tryRead(buffer.begin(), 1, buffer.size())
        .then([this](size_t n) -> kj::Promise<void> {
          if (n == 0) {
            if (pending.size() > 0) endLine();
            return kj::READY_NOW;
          }
          for (char c: buffer.slice(0, n)) {
            if (c == '\n') {
              endLine();
            } else {
              if (pending.size() == LINE_BYTES_MAX) endLine();
              pending.add(c);
            }
          }
          KJ_IF_MAYBE(wait, allTaken) return (*wait)().then([this]() { return readOn(); });
          return readOn();
        });
  }

  void endLine() {
    pending.add('\0');
    take(kj::StringPtr(pending.begin(), pending.size() - 1));
    pending.clear();
  }
};

}  // namespace

kj::Promise<void> readLines(kj::AsyncInputStream& input, kj::Function<void(kj::StringPtr)> take,
    kj::Maybe<kj::Function<kj::Promise<void>()>> allTaken) {
  auto reader = kj::heap<LineReader>(LineReader{input, kj::mv(take), kj::mv(allTaken)});
  auto promise = reader->readOn();
  return promise.attach(kj::mv(reader));
}

}  // namespace runner
