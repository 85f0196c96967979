#include "runner/roles/carry_over.h"

#include <capnp/message.h>
#include <time.h>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/records/mapped_file.h"
#include "runner/checkpoints/carried_parts.h"
#include "runner/experiment/run_length.h"
#include "runner/logs/events.h"
#include "runner/roles/store_updater.h"
#include "runner/system/files.h"

namespace runner {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

kj::Array<const kj::byte> mapped(kj::StringPtr path) {
  return io::mapFile(path, kj::str(path, " cannot be read any more"));
}

// Files of a checkpoint, and their bytes.
struct Parts {
  kj::Vector<kj::Array<const kj::byte>> files;
  kj::Vector<Bytes> bytes;

  void add(const FoundCheckpoint& checkpoint, kj::StringPtr name) {
    bytes.add(files.add(mapped(checkpoint.file(name))));
  }
};

CheckpointFile fileOf(kj::String name, const SavedPart& part) {
  return {kj::mv(name), kj::arr(part.head.asPtr().asConst(), part.values.asPtr().asConst())};
}

kj::StringPtr lastNameOf(kj::StringPtr path) {
  KJ_IF_MAYBE(slash, path.findLast('/')) return path.slice(*slash + 1);
  return path;
}

kj::String lineOf(const RunRecord::Resize& resize, const LoadedExperiment& now,
    const ModelFacts& facts, uint64_t step) {
  auto& experiment = KJ_ASSERT_NONNULL(now.experiment);
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.setTimeS(double(::time(nullptr)));
  auto resized = event.initResized();
  resized.setEpoch(resize.epoch);
  resized.setStep(step);
  resized.setWorkers(resize.workers);
  resized.setServers(resize.servers);
  resized.setEpochs(facts.epochs(experiment));
  resized.setSteps(facts.steps(experiment));
  resized.setGlobalBatchSize(experiment.globalBatchSize());
  resized.setDigest(now.digest);
  resized.setGoesOnFrom(resize.goesOnFrom);
  auto list = resized.initFacts(resize.facts.size());
  for (auto i: kj::indices(resize.facts)) list.set(i, resize.facts[i]);
  return kj::str(formatEvent(event), "\n");
}

}  // namespace

Continued continuedAt(const Experiment& before, const ModelFacts& facts, const SavedPoint& point) {
  Continued earlier;
  KJ_IF_MAYBE(continued, before.continued) earlier = *continued;
  uint64_t epoch = point.epoch - 1;
  return {.epoch = epoch,
      .step = point.step,
      .records = earlier.records + (point.step - earlier.step) * before.globalBatchSize(),
      .updates = updatesUntilEndOf(epoch, before, facts.passLength)};
}

bool hasChangedMembers(const RunFolder& folder) {
  bool result = false;
  eachEventUntilDamage(folder, [&](Event::Reader event) {
    result = (result || event.isMembership()) && !event.isResized();
  });
  return result;
}

RunRecord::Resize carryOver(const LoadedExperiment& before, const RunFolder& from,
    const FoundCheckpoint& checkpoint, const LoadedExperiment& now, const RunFolder& to) {
  auto& old = KJ_ASSERT_NONNULL(before.experiment);
  auto& experiment = KJ_ASSERT_NONNULL(now.experiment);
  ModelFacts facts(experiment);
  auto oldPlacement = placementOf(old, facts.graph),
       placement = placementOf(experiment, facts.graph);
  Parts workers, shards;
  for (uint rank = 0; rank < old.cluster.workers; rank++) {
    workers.add(checkpoint, workerPartName(rank));
  }
  for (uint shard = 0; shard < old.shards(); shard++) shards.add(checkpoint, shardPartName(shard));

  kj::Array<SavedPart> newWorkers, newShards;
  RunRecord::Resize resize;
  auto carry = [&]() {
    newWorkers = carriedWorkers(workers.bytes, experiment.cluster.workers, placement);
    auto updater = shardUpdater(experiment, facts);
    newShards = carriedShards(shards.bytes, oldPlacement, placement,
        [&](const rpc::Slice& slice) { return updater->stateArrays(slice); });
    resize = {checkpoint.point.epoch - 1, old.cluster.workers, experiment.cluster.workers,
        old.cluster.servers, experiment.cluster.servers, kj::str(lastNameOf(from.path)),
        carriedFacts(workers.bytes, experiment.cluster.workers)};
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(carry)) {
    configs::fail("the checkpoint ", checkpoint.path, " cannot be used: ", e->getDescription());
  }
  kj::Vector<CheckpointFile> files;
  for (uint i: kj::indices(newWorkers)) files.add(fileOf(workerPartName(i), newWorkers[i]));
  for (uint i: kj::indices(newShards)) files.add(fileOf(shardPartName(i), newShards[i]));
  auto weights = mapped(checkpoint.file(CHECKPOINT_WEIGHTS));
  files.add(CheckpointFile{kj::str(CHECKPOINT_WEIGHTS), kj::arr(weights.asPtr())});

  auto& point = checkpoint.point;
  auto line = lineOf(resize, now, facts, point.step);
  auto events = mapped(from.events());
  Bytes lines[] = {events.slice(0, point.events_bytes), line.asBytes()};
  writeWhole(to.events(), lines);
  SavedPoint newPoint{kj::str(now.digest), kj::str(point.instructionSet), point.epoch, point.step,
      point.run_s, point.events_bytes + line.size(), io::crc32(line.asBytes(), point.events_crc32),
      {}, true};
  GrowingFiles logs(to.path);
  writeCheckpoint(to, newPoint, files, experiment.checkpoint.keep, logs);
  return resize;
}

void requireBeginning(const Experiment& experiment, const RunFolder& folder,
    const kj::Maybe<FoundCheckpoint>& newest) {
  if (experiment.continued == nullptr || newest != nullptr) return;
  configs::fail("cannot continue the run in ", folder.path, ": it has no usable checkpoint. It ",
      "began at the end of an epoch of another run ([continued]), so it cannot begin again. "
      "Rename ",
      "the folder, and `runner run --resume` continues from the other run again");
}

}  // namespace runner
