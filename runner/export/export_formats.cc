#include "runner/export/export_formats.h"

#include <fcntl.h>
#include <kj/io.h>
#include <kj/memory.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/records/mapped_file.h"
#include "runner/checkpoints/safetensors.h"
#include "runner/export/torch_module.h"
#include "runner/system/files.h"

namespace runner {

namespace {

constexpr kj::StringPtr SCRIPT = ".py"_kj;
constexpr size_t SCRIPT_BYTES_MAX = size_t(64) << 20;

// The first bytes of files of earlier exports, which a new export may replace.
constexpr kj::StringPtr ONNX_BEGIN = "\x08\x08"_kj;  // field 1, ir_version: 8
constexpr kj::StringPtr SCRIPT_BEGIN = "\"\"\"A trained network, exported by runner"_kj;

// Returns why an export must not replace the file at `output`, or null if it may: see
// isForeignFile().
kj::Maybe<kj::String> whyKept(kj::StringPtr output, kj::StringPtr begin) {
  if (!isForeignFile(output, begin)) return nullptr;
  return kj::str(
      output, " exists, and no export has written it. Choose another --output, or remove it");
}

kj::Maybe<kj::String> onnxMisfit(kj::StringPtr output) {
  return whyKept(output, ONNX_BEGIN);
}

kj::Array<ExportedFile> writeOnnx(const ExportedNetwork& network,
    const Preprocessing& preprocessing, OnnxOptions options, kj::StringPtr output) {
  return kj::arr(ExportedFile{kj::str(output), onnxModel(network, preprocessing, options)});
}

// Returns where the weights of a script are.
kj::String weightsOf(kj::StringPtr script) {
  return kj::str(script.slice(0, script.size() - SCRIPT.size()), ".safetensors");
}

// Whether an export has written the weights at `path`. It may have been killed before it wrote the
// script.
bool isOfExport(kj::StringPtr path) {
  bool found = false;
  auto look = [&]() {
    auto file = io::mapFile(path, kj::str(path, " can no longer be read"));
    for (auto& note: notesIn(file)) found = found || note.name == EXPORT_NOTE;
  };
  return kj::runCatchingExceptions(look) == nullptr && found;
}

kj::Maybe<kj::String> torchMisfit(kj::StringPtr output) {
  if (!output.endsWith(SCRIPT) || output == SCRIPT || output.endsWith("/.py")) {
    return kj::str("`", output, "` must end in .py, such as network.py: it is a Python script");
  }
  KJ_IF_MAYBE(why, whyKept(output, SCRIPT_BEGIN)) return kj::mv(*why);
  // `--output weights.py` in the folder of a run must not replace what the run has saved.
  auto weights = weightsOf(output);
  bool isAlone = ::access(output.cStr(), F_OK) != 0;
  if (isAlone && ::access(weights.cStr(), F_OK) == 0 && !isOfExport(weights)) {
    return kj::str("the weights of `", output, "` would replace ", weights,
        ", which does not belong to an exported script. Choose another name, or remove that file");
  }
  KJ_IF_MAYBE(why, whyUnwritable(weights)) {
    return kj::str("cannot write ", weights, ": ", *why, ". Choose another --output");
  }
  return nullptr;
}

kj::Array<ExportedFile> writeTorch(const ExportedNetwork& network,
    const Preprocessing& preprocessing, OnnxOptions options, kj::StringPtr output) {
  auto script = torchScript(network, preprocessing);
  return kj::arr(ExportedFile{weightsOf(output), torchWeights(network, preprocessing)},
      ExportedFile{kj::str(output), kj::heapArray<kj::byte>(script.asBytes())});
}

constexpr ExportFormat ROWS[] = {
    {"onnx", "An ONNX model of opset 13.", true, onnxMisfit, writeOnnx},
    {"torch",
        "A Python script with a PyTorch module, and its weights in a file beside it that ends in "
        ".safetensors.",
        false, torchMisfit, writeTorch},
};

}  // namespace

constinit const kj::ArrayPtr<const ExportFormat> EXPORT_FORMATS = ROWS;

void writeExported(kj::ArrayPtr<const ExportedFile> files) {
  kj::Vector<kj::Own<WholeFile>> written;
  for (auto& file: files) {
    auto whole = kj::heap<WholeFile>(file.path, "choose another --output"_kj);
    whole->append(file.bytes);
    written.add(kj::mv(whole));
  }
  // A full disk must be noticed before anything is replaced.
  for (auto& file: written) file->sync();
  // If the process is killed meanwhile, it must not leave an old script beside new weights.
  kj::Vector<ExportedFile> old;
  for (auto& file: files.slice(1, files.size())) {
    if (::access(file.path.cStr(), F_OK) != 0) continue;
    auto text = readWhole(file.path, SCRIPT_BYTES_MAX);
    old.add(ExportedFile{kj::str(file.path), kj::heapArray<kj::byte>(text.asBytes())});
    ::unlink(file.path.cStr());
  }
  KJ_IF_MAYBE(failure, kj::runCatchingExceptions([&]() { written[0]->finish(); })) {
    for (auto& file: old) {
      kj::ArrayPtr<const kj::byte> text = file.bytes;
      writeWhole(file.path, kj::arrayPtr(&text, 1));
    }
    kj::throwFatalException(kj::mv(*failure));
  }
  for (auto& file: written.asPtr().slice(1, written.size())) file->finish();
}

}  // namespace runner
