#include "runner/weights/weights_file.h"

#include <string.h>

#include "configs/language/failure.h"
#include "io/records/mapped_file.h"
#include "runner/experiment/start_weights.h"
#include "runner/system/reason.h"
#include "runner/weights/mxnet_params.h"

namespace runner {

namespace {

bool beginsWith(kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr text) {
  return bytes.size() >= text.size() && memcmp(bytes.begin(), text.begin(), text.size()) == 0;
}

// Returns what wrote a file that is of another format, and how to convert it, as a clause. Null if
// the format is not known at all.
kj::Maybe<kj::StringPtr> whyUnreadable(kj::ArrayPtr<const kj::byte> bytes) {
  constexpr auto TORCH =
      "was written by torch.save(), and only Python reads such files. Write a file of safetensors "
      "from Python: safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\")"_kj;
  constexpr auto NUMPY =
      "was written by NumPy. Write a file of safetensors from Python: "
      "safetensors.numpy.save_file(dict(numpy.load(\"weights.npz\")), \"weights.safetensors\")"_kj;
  // The oldest files of torch.save() are pickles, all others are archives with a pickle in front.
  constexpr auto PICKLE = "\x80\x02"_kj, ARCHIVE = "PK\x03\x04"_kj, ARRAY = "\x93NUMPY"_kj;
  constexpr auto TORCH_MEMBER = "data.pkl"_kj;
  if (beginsWith(bytes, ARRAY)) return NUMPY;
  if (beginsWith(bytes, PICKLE)) return TORCH;
  // A header of safetensors is JSON.
  constexpr size_t JSON_AT = 8;
  bool isOther = bytes.size() > JSON_AT && bytes[JSON_AT] != '{';
  if (!beginsWith(bytes, ARCHIVE)) {
    if (!isOther || isMxnetParams(bytes)) return nullptr;
    return "is not a file of weights: it begins neither as safetensors files do nor as MXNet's "
           ".params"_kj;
  }
  auto front = bytes.slice(0, kj::min(bytes.size(), 4096));
  return ::memmem(front.begin(), front.size(), TORCH_MEMBER.begin(), TORCH_MEMBER.size()) == nullptr
             ? NUMPY
             : TORCH;
}

}  // namespace

kj::Maybe<kj::StringPtr> WeightsFile::note(kj::StringPtr name) const {
  for (auto& note: notes) {
    if (note.name == name) return note.text.asPtr();
  }
  return nullptr;
}

WeightsFile openWeights(kj::StringPtr path) {
  WeightsFile file{.path = weightsPathOf(path)};
  auto lost = kj::str(file.path, " can no longer be read: it was cut short, or its disk fails");
  auto read = [&]() {
    file.bytes = io::mapFile(file.path, lost);
    if (isMxnetParams(file.bytes)) {
      file.arrays = mxnetArraysIn(file.bytes);
    } else {
      file.arrays = tensorsIn(file.bytes);
      file.notes = notesIn(file.bytes);
    }
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
    KJ_IF_MAYBE(why, whyUnreadable(file.bytes)) configs::fail(file.path, " ", *why);
    configs::fail(file.path, " is not a file of weights: ", reasonOf(*e));
  }
  return file;
}

}  // namespace runner
