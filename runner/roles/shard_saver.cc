#include "runner/roles/shard_saver.h"

#include "configs/language/failure.h"
#include "runner/roles/part_transfer.h"
#include "runner/system/reason.h"

namespace runner {

kj::Promise<void> ShardSaver::begin(Membership& joined) {
  membership = joined;
  if (!joined.continues()) return kj::READY_NOW;
  PartName name{Part::SHARD, index};
  return fetchPart(joined.session(), name).then([this, name](kj::Array<kj::byte> bytes) {
    auto restore = [&]() {
      PartLoader loader(bytes);
      shard.restore(loader);
      loader.finish();
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(restore)) {
      configs::fail(name.file(), " of the checkpoint cannot be used: ", reasonOf(*e));
    }
  });
}

void ShardSaver::save(uint64_t step) {
  PartSaver saver(last_bytes);
  shard.visitState(saver);
  auto part = saver.finish();
  last_bytes = part.values.size();
  auto& job = KJ_ASSERT_NONNULL(membership);
  // If a part never arrives, all workers wait for it at the next checkpoint.
  sending = sendPart(job.session(), step, {Part::SHARD, index}, kj::mv(part))
                .eagerlyEvaluate([&job](kj::Exception&& e) { job.fail(kj::mv(e)); });
}

}  // namespace runner
