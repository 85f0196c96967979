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

// Writes a checkpoint as the folder checkpoints/step-<step> in `folder`. The manifest is written
// last: a folder without a manifest is not a checkpoint. It has checksums of all other files, and
// of the events and logs so far. When the call returns, all files of the checkpoint and the events
// are on the disk.
//
// Then removes all but the newest `keep` checkpoints, and unfinished ones that killed processes
// have left. The newest checkpoint that ends an epoch always stays. `logs` are the logs in the
// run's folder. Pass the same object for all checkpoints of a run. Returns the number of bytes
// written.
//
// If a file cannot be written, or if events.jsonl does not hold what the run has written to it,
// throws with the path, the cause and what to do. All older checkpoints then stay.
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
// damaged. The exception's description does not name the checkpoint ("its manifest is damaged"),
// because the caller does.
FoundCheckpoint readCheckpoint(kj::StringPtr path);

// Returns the steps after which the run in `folder` has checkpoints, the newest first. Leaves out
// those that are not complete, or are being removed.
kj::Array<uint64_t> checkpointedSteps(const RunFolder& folder);

// Which checkpoints to look for: those after any step, or only those at the end of an epoch.
enum class Standing { ANYWHERE, AT_EPOCH_END };

// Returns the newest intact checkpoint of the run in `folder`, or null if it has none. Calls
// `refuse` with a sentence for each newer checkpoint that is damaged, that another program or
// experiment has written, or whose events are no longer in the folder. Without `digest`, the
// checkpoint may belong to any experiment. With AT_EPOCH_END, ignores checkpoints within an epoch.
kj::Maybe<FoundCheckpoint> newestCheckpoint(const RunFolder& folder,
    kj::Maybe<kj::StringPtr> digest, kj::FunctionParam<void(kj::String why)> refuse,
    Standing standing = Standing::ANYWHERE);

// Returns a clause about the newest checkpoint that only another version of the program or another
// experiment file could use: its manifest is intact, but states another format, or another
// experiment than `digest`. Null if the run has no such checkpoint.
kj::Maybe<kj::String> whyForeign(const RunFolder& folder, kj::StringPtr digest);
// Returns a clause about a file of a checkpoint that the system does not let this process open:
// "cannot open PATH: Permission denied". Such a checkpoint may be intact. Null if there is no such
// file.
kj::Maybe<kj::String> whyUnreadable(const RunFolder& folder);

// Throws if no checkpoint of the run in `folder` can be used, and another program, file or user
// could use one. The run would otherwise begin again, and set that checkpoint aside.
void requireContinuable(const RunFolder& folder, kj::StringPtr digest);

// Renames the checkpoints that are newer than `kept`, so that the run can continue from `kept`. If
// `kept` is null, renames all, so that the run can begin again. Removes checkpoints that a killed
// process has left unfinished. Throws with path and cause.
void setAsideAfter(const RunFolder& folder, kj::Maybe<const FoundCheckpoint&> kept);

// Names of files in a checkpoint.
constexpr kj::StringPtr CHECKPOINT_WEIGHTS = "weights.safetensors"_kj;
kj::String workerPartName(uint rank);
kj::String shardPartName(uint shard);

}  // namespace runner
