#include "runner/roles/disk_room.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "configs/language/failure.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

// The line of the header that names a tensor.
constexpr uint64_t TENSOR_BYTES = 256;

// The text of the experiment, and the names of its classes.
constexpr uint64_t NOTES_BYTES = 16384;

// A speed line: its event, and its line in log.txt, the role's log and TensorBoard.
constexpr uint64_t SPEED_BYTES = 1024;

// The lines of a worker at the end of an epoch, and the part of them that is about one server.
constexpr uint64_t EPOCH_BYTES = 4096;
constexpr uint64_t LINK_BYTES = 512;

}  // namespace

NeededRoom neededRoom(const Experiment& experiment, const ModelFacts& facts) {
  auto& graph = facts.graph;
  auto& cluster = experiment.cluster;
  uint64_t values = graph.parameters + graph.statisticsSize;
  uint64_t tensors = graph.keys.size() + graph.statistics.size();
  uint64_t lines = facts.stepsUntilEndOf(1, experiment) / experiment.log.every + 1;
  uint64_t links = kj::max(1u, experiment.shards());
  // In base64.
  uint64_t mean_bytes =
      experiment.data.augment.meanImage ? facts.imageShape.size() * sizeof(float) * 4 / 3 : 0;
  uint64_t files = 1;
  if (experiment.checkpoint.keepBest) files++;
  if (experiment.train.average != nullptr) files++;
  return {files * (values * sizeof(float) + tensors * TENSOR_BYTES + NOTES_BYTES + mean_bytes),
      cluster.seats() * (lines * SPEED_BYTES + EPOCH_BYTES + links * LINK_BYTES)};
}

kj::Maybe<kj::String> whyNoRoom(const RunFolder& folder, NeededRoom needed) {
  struct statvfs disk;
  if (::statvfs(folder.path.cStr(), &disk) != 0) {
    configs::fail("cannot read ", folder.path, ": ", strerror(errno));
  }
  if (disk.f_blocks == 0) return nullptr;
  uint64_t free_bytes = uint64_t(disk.f_bavail) * disk.f_frsize;
  if (free_bytes >= needed.weights_bytes + needed.logs_bytes) return nullptr;
  // After the last epoch there are no more logs.
  auto logs = needed.logs_bytes == 0
                  ? kj::str()
                  : kj::str(" and the logs of an epoch about ", bytesCell(needed.logs_bytes));
  return kj::str("not enough room on the disk of ", folder.path, ": ", bytesCell(free_bytes),
      " are free, but the weights need ", bytesCell(needed.weights_bytes), logs,
      "; free some space, or ", otherRuns());
}

}  // namespace runner
