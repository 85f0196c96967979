// A checkpoint: its manifest, or a file of arrays in it. The first byte says which.
#include "runner/checkpoints/checkpoints.h"

#include <kj/encoding.h>
#include <string.h>
#include <sys/stat.h>

#include "configs/language/state_visitor.h"
#include "io/checksum.h"
#include "runner/checkpoints/array_figures.h"
#include "runner/checkpoints/safetensors.h"
#include "runner/checkpoints/saved_files.h"
#include "runner/checkpoints/saved_part.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

// Stands in an input for the checksum of the manifest.
constexpr kj::StringPtr SUM = "$SUM"_kj;

// The text, with its checksum where SUM stands for the first time.
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

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  uint8_t choice = dice.byte();
  auto rest = dice.all();
  if (choice % 2 == 0) return readManifest(rest.asChars());
  // Aligned, as in the memory that a file is read into.
  readArrays(kj::heapArray(rest));
}

}  // namespace fuzz
