// A checkpoint: its manifest, a file of arrays in it, or the file of a shard. The first byte says
// which.
#include "runner/checkpoints/checkpoints.h"

#include <kj/encoding.h>
#include <string.h>
#include <sys/stat.h>

#include "configs/language/state_visitor.h"
#include "io/checksum.h"
#include "rpc/placement.h"
#include "runner/checkpoints/array_figures.h"
#include "runner/checkpoints/kept_parts.h"
#include "runner/checkpoints/safetensors.h"
#include "runner/checkpoints/saved_files.h"
#include "runner/checkpoints/saved_part.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

// Stands in an input for the checksum of the manifest.
constexpr kj::StringPtr SUM = "$SUM"_kj;

// The text, with its checksum in place of the first SUM.
kj::String withSum(kj::ArrayPtr<const char> text) {
  auto found =
      static_cast<const char*>(::memmem(text.begin(), text.size(), SUM.begin(), SUM.size()));
  if (found == nullptr) return kj::str(text);
  auto before = text.slice(0, found - text.begin());
  auto after = text.slice(before.size() + SUM.size(), text.size());
  io::Sha256 sum;
  sum.update(before.asBytes());
  sum.update(after.asBytes());
  return kj::str(before, kj::encodeHex(sum.finish()), after);
}

void readManifest(kj::ArrayPtr<const char> text) {
  runner::RunFolder run{kj::str(folder())};
  auto path = kj::str(run.checkpoints(), "/step-1");
  ::mkdir(run.checkpoints().cStr(), 0700);
  ::mkdir(path.cStr(), 0700);
  fileOf("checkpoints/step-1/worker-0.safetensors", nullptr);
  fileOf("checkpoints/step-1/manifest.json", withSum(text).asBytes());
  runner::newestCheckpoint(run, nullptr, [](kj::String) {});
  runner::readSavedFiles(path, [](kj::String) {});
}

// Two arrays, as a role restores them.
struct Kept {
  float floats[4];
  uint64_t numbers[2];

  void visitState(configs::StateVisitor& visitor) {
    visitor.floats("weights", kj::arrayPtr(floats, 4));
    visitor.counts("counts", kj::arrayPtr(numbers, 2));
  }
};

void readArrays(Bytes bytes) {
  for (auto& tensor: runner::tensorsIn(bytes)) {
    runner::figuresOf(tensor);
    runner::differenceOf(tensor, tensor);
  }
  runner::PartLoader loader(bytes);
  Kept kept;
  kept.visitState(loader);
  loader.finish();
}

// Puts a shard's part together: the same bytes are its file and the file of weights.
void readShard(Bytes bytes) {
  rpc::Key keys[] = {{kj::str("a"), 0, 5}, {kj::str("b"), 5, 3}};
  auto placement = rpc::place(keys, 16, 2, rpc::PLACEMENTS[0]);
  for (uint shard: {0u, 1u}) {
    auto part = runner::wholeShard(bytes, bytes, placement, shard);
    uint64_t size = 0;
    for (auto& piece: part.pieces) size += piece.size();
    auto whole = kj::heapArray<kj::byte>(size);
    runner::copyPieces(part.pieces, 0, whole);
    bool hasValues = false;
    for (auto& array: runner::tensorsIn(whole)) {
      hasValues = hasValues || array.name == runner::SHARD_VALUES;
    }
    must(hasValues, "the part of a shard lacks its values");
  }
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  uint8_t choice = dice.byte();
  auto rest = dice.all();
  if (choice % 2 == 0) return readManifest(rest.asChars());
  // Aligned, as in the memory that a file is read into.
  auto bytes = kj::heapArray(rest);
  if (choice % 4 == 3) return readShard(bytes);
  readArrays(bytes);
}

}  // namespace fuzz
