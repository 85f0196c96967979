#include "runner/roles/best_file.h"

#include "configs/language/failure.h"
#include "runner/roles/disk_work.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"

namespace runner {

BestFile::BestFile(const RunFolder& folder, uint64_t bytesMax,
    kj::Function<void(kj::StringPtr)> failed, kj::Maybe<const OneThread&> oneThread)
    : folder(folder), bytesMax(bytesMax), failed(kj::mv(failed)), oneThread(oneThread) {}

BestFile::~BestFile() noexcept(false) {
  writing = nullptr;
}

void BestFile::take(Session::SavePartParams::Reader piece) {
  incoming.take(piece, bytesMax);
  if (!incoming.isWhole()) return;
  next = kj::mv(incoming.bytes);
  incoming = {{Part::BEST, 0}};
  if (!isWriting) begin();
}

kj::Promise<void> BestFile::write() {
  if (next != nullptr) current = kj::mv(next);
  return besideLoop(oneThread,
      [this]() {
        kj::ArrayPtr<const kj::byte> piece = current;
        writeWhole(folder.best(), kj::arrayPtr(&piece, 1));
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
        for (auto& fulfiller: waiting) fulfiller->fulfill();
        waiting.clear();
        return kj::READY_NOW;
      });
}

void BestFile::begin() {
  isWriting = true;
  writing = write().eagerlyEvaluate(nullptr);
}

kj::Promise<void> BestFile::whenIdle() {
  if (!isWriting) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting.add(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

kj::Promise<void> BestFile::finish() {
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
