#include "runner/export/export_formats.h"

#include <kj/memory.h>
#include <unistd.h>

#include "runner/export/torch_module.h"
#include "runner/system/files.h"

namespace runner {

namespace {

constexpr kj::StringPtr SCRIPT = ".py"_kj;

kj::Maybe<kj::String> noMisfit(kj::StringPtr output) {
  return nullptr;
}

kj::Array<ExportedFile> writeOnnx(const ExportedNetwork& network,
    const Preprocessing& preprocessing, OnnxOptions options, kj::StringPtr output) {
  return kj::arr(ExportedFile{kj::str(output), onnxModel(network, preprocessing, options)});
}

// Returns where the weights of a script are.
kj::String weightsOf(kj::StringPtr script) {
  return kj::str(script.slice(0, script.size() - SCRIPT.size()), ".safetensors");
}

kj::Maybe<kj::String> torchMisfit(kj::StringPtr output) {
  if (!output.endsWith(SCRIPT) || output == SCRIPT || output.endsWith("/.py")) {
    return kj::str("`", output, "` must end in .py, such as network.py: it is a Python script");
  }
  // `--output weights.py` in the folder of a run must not replace what the run has saved.
  auto weights = weightsOf(output);
  if (::access(weights.cStr(), F_OK) == 0 && ::access(output.cStr(), F_OK) != 0) {
    return kj::str("the weights of `", output, "` would replace ", weights,
        ", which does not belong to an exported script. Choose another name");
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
    {"onnx", "An ONNX model of opset 13.", true, noMisfit, writeOnnx},
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
  for (auto& file: written) file->finish();
}

}  // namespace runner
