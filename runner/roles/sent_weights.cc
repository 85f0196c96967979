#include "runner/roles/sent_weights.h"

#include "configs/language/failure.h"
#include "runner/roles/disk_work.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"

namespace runner {

SentWeights::SentWeights(Part part, kj::String path, uint64_t bytesMax,
    kj::Function<void(kj::StringPtr)> failed, kj::Maybe<const OneThread&> oneThread)
    : part(part),
      path(kj::mv(path)),
      bytesMax(bytesMax),
      failed(kj::mv(failed)),
      oneThread(oneThread),
      incoming{{part, 0}} {}

SentWeights::~SentWeights() noexcept(false) {
  writing = nullptr;
}

void SentWeights::take(Session::SavePartParams::Reader piece) {
  incoming.take(piece, bytesMax);
  if (!incoming.isWhole()) return;
  next = kj::mv(incoming.bytes);
  incoming = {{part, 0}};
  if (!isWriting) begin();
}

kj::Promise<void> SentWeights::write() {
  if (next != nullptr) current = kj::mv(next);
  return besideLoop(oneThread,
      [this]() {
        kj::ArrayPtr<const kj::byte> piece = current;
        writeWhole(path, kj::arrayPtr(&piece, 1));
      })
      .then(
          [this]() {
            problem = nullptr;
            current = nullptr;
          },
          [this](kj::Exception&& e) { failed(problem.emplace(reasonOf(e))); })
      .then([this]() -> kj::Promise<void> {
        if (next != nullptr) return write();
        isWriting = false;
        waiting.wakeAll();
        return kj::READY_NOW;
      });
}

void SentWeights::begin() {
  isWriting = true;
  writing = write().eagerlyEvaluate(nullptr);
}

kj::Promise<void> SentWeights::whenIdle() {
  if (!isWriting) return kj::READY_NOW;
  return waiting.wait();
}

kj::Promise<void> SentWeights::finish() {
  return whenIdle()
      .then([this]() -> kj::Promise<void> {
        if (problem == nullptr) return kj::READY_NOW;
        begin();
        return whenIdle();
      })
      .then([this]() {
        KJ_IF_MAYBE(reason, problem) configs::fail(*reason);
      });
}

}  // namespace runner
