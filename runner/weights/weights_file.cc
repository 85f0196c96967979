#include "runner/weights/weights_file.h"

#include <string.h>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/records/mapped_file.h"
#include "runner/experiment/start_weights.h"
#include "runner/logs/run_ending.h"
#include "runner/system/reason.h"
#include "runner/weights/mxnet_params.h"

namespace runner {

namespace {

bool beginsWith(kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr text) {
  return bytes.size() >= text.size() && memcmp(bytes.begin(), text.begin(), text.size()) == 0;
}

bool contains(kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr text) {
  return ::memmem(bytes.begin(), bytes.size(), text.begin(), text.size()) != nullptr;
}

// Returns the name of the first file in a zip archive: the head of that file has the size of the
// name at byte 26, and the name from byte 30 on.
kj::String firstNameIn(kj::ArrayPtr<const kj::byte> zip) {
  constexpr size_t SIZE_AT = 26, NAME_AT = 30;
  if (zip.size() < NAME_AT) return nullptr;
  size_t end = NAME_AT + zip[SIZE_AT] + (size_t(zip[SIZE_AT + 1]) << 8);
  return kj::heapString(zip.slice(NAME_AT, kj::min(end, zip.size())).asChars());
}

// Returns which program wrote a file of another format, and how to convert it, as a clause. Null if
// the format is unknown.
kj::Maybe<kj::StringPtr> whyUnreadable(kj::ArrayPtr<const kj::byte> bytes) {
  constexpr auto TORCH =
      "was written by torch.save(), and only Python reads such files. Convert it in Python, with "
      "the names of your files: safetensors.torch.save_file(torch.load(\"weights.pt\", "
      "map_location=\"cpu\"), \"weights.safetensors\"). If the weights are one entry of the file, "
      "put its name after load(…), such as [\"state_dict\"]"_kj;
  constexpr auto NUMPY =
      "was written by NumPy. Write a file of safetensors from Python: "
      "safetensors.numpy.save_file(dict(numpy.load(\"weights.npz\")), \"weights.safetensors\")"_kj;
  constexpr auto PICKLE =
      "is a pickle of Python. Write a file of safetensors from Python: "
      "safetensors.numpy.save_file(pickle.load(open(\"weights.pkl\", \"rb\")), "
      "\"weights.safetensors\")"_kj;
  constexpr auto OTHER_ZIP =
      "is a zip archive of another program, which cannot be read. Write a file of safetensors from "
      "Python: safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\")"_kj;
  constexpr auto ZIP_BEGIN = "PK\x03\x04"_kj, ARRAY_BEGIN = "\x93NUMPY"_kj;
  constexpr kj::byte PICKLE_BEGIN = 0x80, PROTOCOL_MIN = 2, PROTOCOL_MAX = 5;
  // The oldest files of torch.save() are pickles that begin with this number of ten bytes. All
  // others are archives with this pickle in front.
  constexpr auto TORCH_NUMBER = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"_kj;
  constexpr auto TORCH_MEMBER = "/data.pkl"_kj;
  if (beginsWith(bytes, ARRAY_BEGIN)) return NUMPY;
  auto front = bytes.slice(0, kj::min(bytes.size(), 4096));
  bool isPickle = bytes.size() > 1 && bytes[0] == PICKLE_BEGIN && bytes[1] >= PROTOCOL_MIN &&
                  bytes[1] <= PROTOCOL_MAX;
  if (isPickle) return contains(front, TORCH_NUMBER) ? TORCH : PICKLE;
  if (beginsWith(bytes, ZIP_BEGIN)) {
    auto name = firstNameIn(bytes);
    if (name.endsWith(".npy")) return NUMPY;
    return name.endsWith(TORCH_MEMBER) ? TORCH : OTHER_ZIP;
  }
  // A header of safetensors is JSON.
  constexpr size_t JSON_AT = 8;
  bool isOther = bytes.size() > JSON_AT && bytes[JSON_AT] != '{';
  if (!isOther || isMxnetParams(bytes)) return nullptr;
  return "is not a file of weights: it begins neither as safetensors files do nor as MXNet's "
         ".params"_kj;
}

// Throws if the run around `file` finished with other weights.
void requireAsRecorded(const WeightsFile& file) {
  RunFolder folder{kj::str(".")};
  kj::StringPtr name = file.path;
  KJ_IF_MAYBE(slash, file.path.findLast('/')) {
    folder.path = kj::heapString(file.path.slice(0, *slash));
    name = file.path.slice(*slash + 1);
  }
  if (!folder.weights().endsWith(kj::str("/", name))) return;
  KJ_IF_MAYBE(sha256, recordedWeightsOf(folder)) {
    KJ_IF_MAYBE(values, valuesIn(file.bytes)) {
      if (io::sha256Hex(*values) == *sha256) return;
    }
    configs::fail(file.path, " has changed since the run wrote it: the SHA-256 of its values is ",
        "not the one in ", folder.events(), ". `runner run FILE --resume` trains them again from ",
        "the newest checkpoint. To use the file as it is, copy it to another folder");
  }
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
      auto contents = contentsOf(file.bytes);
      file.arrays = kj::mv(contents.tensors);
      file.notes = kj::mv(contents.notes);
    }
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
    KJ_IF_MAYBE(why, whyUnreadable(file.bytes)) configs::fail(file.path, " ", *why);
    configs::fail(file.path, " is not a file of weights: ", reasonOf(*e));
  }
  requireAsRecorded(file);
  return file;
}

}  // namespace runner
