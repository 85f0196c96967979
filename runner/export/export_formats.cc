#include "runner/export/export_formats.h"

#include <fcntl.h>
#include <kj/io.h>
#include <kj/memory.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/export/torch_module.h"
#include "runner/system/files.h"

namespace runner {

namespace {

constexpr kj::StringPtr SCRIPT = ".py"_kj;

// The first bytes of files of earlier exports, which a new export may replace.
constexpr kj::StringPtr ONNX_BEGIN = "\x08\x08"_kj;  // field 1, ir_version: 8
constexpr kj::StringPtr SCRIPT_BEGIN = "\"\"\"A trained network, exported by runner"_kj;

// Returns why an export must not replace the file at `output`: it does not begin with `begin`, so
// that something else has written it. A mistyped name must not destroy the weights of a run.
kj::Maybe<kj::String> whyKept(kj::StringPtr output, kj::StringPtr begin) {
  struct stat about;
  if (::stat(output.cStr(), &about) != 0 || !S_ISREG(about.st_mode)) return nullptr;
  kj::AutoCloseFd fd(::open(output.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  auto found = kj::heapArray<char>(begin.size());
  bool isOurs = fd.get() >= 0 && ::read(fd, found.begin(), found.size()) == ssize_t(found.size()) &&
                found.asPtr() == begin.asArray();
  if (isOurs) return nullptr;
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

kj::Maybe<kj::String> torchMisfit(kj::StringPtr output) {
  if (!output.endsWith(SCRIPT) || output == SCRIPT || output.endsWith("/.py")) {
    return kj::str("`", output, "` must end in .py, such as network.py: it is a Python script");
  }
  KJ_IF_MAYBE(why, whyKept(output, SCRIPT_BEGIN)) return kj::mv(*why);
  // `--output weights.py` in the folder of a run must not replace what the run has saved.
  auto weights = weightsOf(output);
  if (::access(weights.cStr(), F_OK) == 0 && ::access(output.cStr(), F_OK) != 0) {
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
  // If the process is killed meanwhile, it must not leave an old script beside new weights.
  for (auto& file: files.slice(1, files.size())) ::unlink(file.path.cStr());
  for (auto& file: written) file->finish();
}

}  // namespace runner
