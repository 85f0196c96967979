#include "runner/commands/export_command.h"

#include <kj/vector.h>

#include "configs/language/diagnostics.h"
#include "nn/network/fold_batch_norms.h"
#include "runner/system/files.h"
#include "runner/system/version.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

kj::Array<kj::StringPtr> formatNames() {
  return KJ_MAP(format, EXPORT_FORMATS) {
    return kj::StringPtr(format.name);
  };
}

}  // namespace

kj::MainFunc ExportCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Writes a trained network for other programs. RUN is the folder of a run, a file of weights, "
      "or an experiment file with model.weights.\n"
      "\n"
      "  runner export runs/cifar10_local/last --to onnx --output cifar10.onnx\n"
      "  runner export runs/cifar10_local/last --to torch --output cifar10.py\n"
      "\n"
      "An ONNX model takes `images`, N×C×H×W, and returns `logits`. A Python script contains the "
      "network as a PyTorch module. Run as a program, it classifies an image. Its weights are "
      "written beside it, to a file whose name ends in .safetensors.");
  builder
      .addOptionWithArg({"to"}, KJ_BIND_METHOD(*this, chooseFormat), "FORMAT",
          "onnx: a model of opset 13; torch: a Python script with a PyTorch module")
      .addOptionWithArg({"output"}, textSetter(output, "name a file, e.g. --output network.onnx"),
          "FILE", "the file to write; an earlier export is replaced")
      .addOption({"with-preprocessing"}, flagSetter(options.withPreprocessing),
          "for onnx: the model takes pixels from 0 to 255, and normalises them itself")
      .addOption({"probabilities"}, flagSetter(options.probabilities),
          "for onnx: the model returns probabilities in place of logits")
      .addOption({"fold-batch-norm"}, flagSetter(foldsBatchNorms),
          "merge each batch norm into the convolution or dense layer before it");
  addModel(builder);
  return builder.callAfterParsing(KJ_BIND_METHOD(*this, exportModel)).build();
}

Validity ExportCommand::chooseFormat(kj::StringPtr word) {
  for (auto& row: EXPORT_FORMATS) {
    if (word == row.name) {
      format = &row;
      return true;
    }
  }
  return kj::str("there is no format `", word, "`; ", configs::suggest(word, formatNames()));
}

kj::Maybe<kj::String> ExportCommand::misfit() const {
  if (format == nullptr) {
    return kj::str("name a format: --to ", kj::strArray(formatNames(), " or --to "));
  }
  if (output.size() == 0) return kj::str("name a file: --output FILE");
  if (output == "-") {
    return kj::str("an export does not go to standard output: name a file with --output");
  }
  if (!format->hasOnnxOptions && options.withPreprocessing) {
    return kj::str("--with-preprocessing is for --to onnx; a script has a function preprocess()");
  }
  if (!format->hasOnnxOptions && options.probabilities) {
    return kj::str("--probabilities is for --to onnx; in PyTorch, call softmax(1) on the logits");
  }
  KJ_IF_MAYBE(why, format->misfit(output)) return kj::mv(*why);
  KJ_IF_MAYBE(why, whyUnwritable(output)) {
    return kj::str("cannot write ", output, ": ", *why, ". Choose another --output");
  }
  return nullptr;
}

Validity ExportCommand::exportModel() {
  KJ_IF_MAYBE(why, misfit()) return kj::mv(*why);
  auto model = openModel();
  auto augmenter = model.augmenter();
  auto preprocessing = preprocessingOf(model.experiment().data, augmenter);
  auto digest = kj::str(model.digest.map([](auto& text) { return text.asPtr(); }).orDefault(""_kj));
  kj::Array<ExportedFile> files;
  auto make = [&](const nn::Graph& graph, kj::ArrayPtr<const float> parameters,
                  kj::ArrayPtr<const float> statistics) {
    ExportedNetwork network{graph, parameters, statistics, digest};
    files = format->write(network, preprocessing, options, output);
  };
  commandLine.orWrongInput([&]() {
    if (foldsBatchNorms) {
      auto folded = nn::foldBatchNorms(model.graph, model.parameters, model.statistics);
      make(folded.graph, folded.parameters, folded.statistics);
    } else {
      make(model.graph, model.parameters, model.statistics);
    }
  });
  writeExported(files);
  for (auto& file: files) {
    print(kj::str("wrote ", file.path, ": ", bytesCell(double(file.bytes.size())), "\n"));
  }
  return true;
}

}  // namespace runner
