// runner/checkpoints/saved_files.h: reads weights and checkpoints for people who look at them.
#pragma once

#include <kj/function.h>

#include "runner/checkpoints/checkpoints.h"
#include "runner/checkpoints/safetensors.h"

namespace runner {

// A file of weights, or a part of a checkpoint.
struct SavedFile {
  kj::String name;                  // without its folder
  kj::Array<const kj::byte> bytes;  // of the mapped file
  kj::Array<FoundTensor> arrays;    // refer to `bytes`
};

// Returns the number in an array of one whole number or one real number. Null if there is no such
// array.
kj::Maybe<double> numberIn(const SavedFile& file, kj::StringPtr name);

// What a path names.
struct SavedFiles {
  kj::String path;
  kj::Maybe<FoundCheckpoint> checkpoint;  // null for a single file
  kj::Array<SavedFile> files;
  // The file of weights in that folder, which says where each key of the network is in the flat
  // arrays. Null if the folder has no such file, or if the file cannot be read.
  kj::Maybe<SavedFile> weights;
  // How many bytes of the values in `weights` are parameters. Moving statistics follow them. 0:
  // unknown.
  uint64_t parameters_bytes = 0;
};

// Reads what `path` names: a file of weights, a part of a checkpoint, a checkpoint, or a run. Of a
// run, reads the newest checkpoint, or the final weights if it has no checkpoint. Calls `refuse` as
// newestCheckpoint() does. Throws, with the path, if `path` is something else or is damaged. The
// files are mapped, so that they need little memory: see io::mapFile().
SavedFiles readSavedFiles(kj::StringPtr path, kj::FunctionParam<void(kj::String why)> refuse);

// Returns `array` in pieces, one per key of the network, if `saved` knows its keys, and if it has
// one value per parameter, or one per statistic. Each piece has the name of its key. Otherwise
// returns one piece: the whole array, with an empty name.
kj::Array<FoundTensor> piecesByKey(const FoundTensor& array, const SavedFiles& saved);

// Whether an array of a checkpoint holds times or traffic. These differ from run to run even if
// everything else is equal.
bool isMeasured(const FoundTensor& array);

}  // namespace runner
