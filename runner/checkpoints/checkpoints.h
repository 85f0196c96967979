// runner/checkpoints/checkpoints.h: the checkpoints of a run, on disk.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/string.h>

#include "runner/logs/run_folder.h"
#include "runner/system/growing_files.h"

namespace runner {

using kj::uint;

// The number of the format that this program writes and reads.
constexpr uint CHECKPOINT_FORMAT = 5;

// Where a run stood when it was saved.
struct SavedPoint {
  kj::String digest;          // of the experiment
  kj::String instructionSet;  // that all workers compute with
  uint epoch = 0;             // the present one, from 1
  uint64_t step = 0;          // steps that each worker has made
  double run_s = 0;           // how long the run had lasted
  uint64_t events_bytes = 0;  // how much of events.jsonl belongs to the run so far
  uint32_t events_crc32 = 0;  // of these bytes, as the run has written them
  LogExtents logs{};          // how long its other logs were. No files: unknown
  // Whether the checkpoint stands between two epochs: `epoch` has no step yet.
  bool endsEpoch = false;
};

// A file of a checkpoint: the bytes of its pieces, one after the other.
struct CheckpointFile {
  kj::String name;
  kj::Array<kj::ArrayPtr<const kj::byte>> pieces;
};

// Writes a checkpoint to `folder`, as the folder checkpoints/step-<step>. The manifest, with a
// checksum of each other file, of the events so far and of the logs so far, is written last: a
// folder without a manifest is not a checkpoint. When the call returns, all files of the checkpoint
// and the events are on the disk. Then removes all but the newest `keep` checkpoints, and what
// killed processes have left. The newest checkpoint that ends an epoch stays in any case. `logs`
// are those of the run's folder: the same object for all checkpoints of a run. Returns the bytes
// that it wrote. Throws with path, cause and way out if a file cannot be written, or if
// events.jsonl does not hold what the run has written to it. The older checkpoints then stay.
uint64_t writeCheckpoint(const RunFolder& folder, const SavedPoint& point,
    kj::ArrayPtr<const CheckpointFile> files, uint keep, GrowingFiles& logs);

// A checkpoint whose files agree with its manifest.
struct FoundCheckpoint {
  kj::String path;
  SavedPoint point;
  kj::String version;           // of the program that wrote it
  double time_s;                // when, since 1970
  kj::Array<kj::String> files;  // their names, without the manifest

  // The path of one of its files.
  kj::String file(kj::StringPtr name) const { return kj::str(path, "/", name); }
};

// Returns the checkpoint in the folder `path`. Reads all of its files. Throws if the checkpoint is
// damaged. The description does not name the checkpoint ("its manifest is damaged"), so that the
// caller can.
FoundCheckpoint readCheckpoint(kj::StringPtr path);

// Which checkpoints are looked for: those between two steps, or only those between two epochs.
enum class Standing { ANYWHERE, AT_EPOCH_END };

// Returns the newest whole checkpoint of the run in `folder`. Null if it has none. Calls `refuse`
// with a sentence for each newer one that is damaged, that another program or experiment has
// written, or whose events are no longer in the folder. Without `digest`, it may belong to any
// experiment. Leaves out those that stand elsewhere than `standing` says.
kj::Maybe<FoundCheckpoint> newestCheckpoint(const RunFolder& folder,
    kj::Maybe<kj::StringPtr> digest, kj::FunctionParam<void(kj::String why)> refuse,
    Standing standing = Standing::ANYWHERE);

// Returns a clause about the newest checkpoint that this program cannot use, but another version of
// the program or another experiment file could: its manifest is intact, but states another format,
// or another experiment than `digest`. Null if the run has no such checkpoint.
kj::Maybe<kj::String> whyForeign(const RunFolder& folder, kj::StringPtr digest);
// Returns a clause about a file of a checkpoint that the system does not let this process open, so
// that the checkpoint may be intact all the same: "cannot open PATH: Permission denied". Null if
// there is no such file.
kj::Maybe<kj::String> whyUnreadable(const RunFolder& folder);

// Gives the checkpoints that are newer than `kept` other names, so that the run can be continued
// from there. If it is null, renames all, so that the run can begin again. Removes those that a
// killed process has left unfinished. Throws with path and cause.
void setAsideAfter(const RunFolder& folder, kj::Maybe<const FoundCheckpoint&> kept);

// Names of files.
constexpr kj::StringPtr CHECKPOINT_WEIGHTS = "weights.safetensors"_kj;
kj::String workerPartName(uint rank);
kj::String shardPartName(uint shard);

}  // namespace runner
