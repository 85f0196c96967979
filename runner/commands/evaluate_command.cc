#include "runner/commands/evaluate_command.h"

#include <kj/map.h>

#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "io/datasets/datasets.h"
#include "io/images/pixels.h"
#include "io/paths.h"
#include "nn/softmax.h"
#include "runner/commands/run_data.h"
#include "runner/inference/file_images.h"
#include "runner/logs/confusion_file.h"
#include "runner/logs/run_folder.h"
#include "runner/report/class_report.h"
#include "runner/report/contact_sheet.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/tables/terminal_table.h"
#include "runner/text/json.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Decimals of losses and accuracies, as in the table of a run.
constexpr uint DECIMALS = 6;
// Decimals of the probabilities below images.
constexpr uint SHORT_DECIMALS = 3;

constexpr uint TOP_K = 5;
// How many of the worst images a page shows by default.
constexpr uint WORST = 60;

// Returns the first names of the classes of a network.
kj::String classesOf(const TrainedModel& model) {
  constexpr uint SHOWN = 12;
  kj::Vector<kj::String> names;
  for (uint label = 0; label < kj::min(SHOWN, model.graph.classes); label++) {
    names.add(model.className(label));
  }
  return kj::str(kj::strArray(names, ", "), model.graph.classes > SHOWN ? ", …" : "");
}

// Stands for the label of a name that several classes share.
constexpr int32_t SEVERAL = -2;

// Returns the files below `folder` with their labels: the first folder has the name of a class, or
// its number. A `/` in the name of a class is a `_` in that of its folder. Leaves out files that
// are not in such a folder.
kj::Array<ImageFileName> labelledByFolder(const TrainedModel& model, kj::StringPtr folder,
    kj::ArrayPtr<ImageFileName> files, kj::FunctionParam<void(kj::StringPtr)> leftOut) {
  kj::Vector<ImageFileName> labelled;
  kj::HashMap<kj::String, int32_t> labels;
  for (uint label = 0; label < model.graph.classes; label++) {
    auto name = inUtf8(model.className(label));
    for (char& c: name) c = c == '/' ? '_' : c;
    labels.upsert(kj::mv(name), int32_t(label), [](int32_t& first, int32_t&&) { first = SEVERAL; });
  }
  // If a folder's name is both the name of a class and the number of another, the name counts.
  for (uint label = 0; label < model.graph.classes; label++) {
    labels.upsert(kj::str(label), int32_t(label), [](int32_t&, int32_t&&) {});
  }
  size_t begin = io::withoutSlash(folder).size() + 1;
  for (auto& file: files) {
    auto inside = file.path.slice(begin);
    KJ_IF_MAYBE(slash, inside.findFirst('/')) {
      // The class names in a file of weights are UTF-8, but a folder's name may hold any bytes.
      auto name = inUtf8(kj::heapString(inside.slice(0, *slash)));
      constexpr int32_t UNKNOWN = -1;
      auto label = labels.find(name).orDefault(UNKNOWN);
      if (label == SEVERAL) {
        configs::fail("the network has several classes with the name ", name, ", so the folder ",
            folder, "/", name, " could mean any of them. Give the folder the number of its class");
      } else if (label >= 0) {
        labelled.add(ImageFileName{kj::mv(file.path), label});
      } else {
        configs::fail("the folder ", folder, "/", name,
            " is not named after a class of the network; its classes are ", classesOf(model));
      }
    } else {
      leftOut(kj::str(file.path, ", which is not in a folder that is named after its class"));
    }
  }
  if (labelled.empty()) {
    configs::fail("no image in ", folder,
        " is in a folder that is named after a class. The classes are ", classesOf(model));
  }
  return labelled.releaseAsArray();
}

// Throws if the data set is not of the kind that the network was trained on.
void requireSameKind(const TrainedModel& model, const io::Dataset& dataset) {
  constexpr kj::StringPtr OTHER =
      ". Leave the settings of [data] out, or evaluate a folder of images with --data"_kj;
  auto input = model.graph.inputShape();
  auto batch = dataset.batchShape();
  if (batch.channels != input.channels || batch.height != input.height ||
      batch.width != input.width) {
    configs::fail("the data set gives images of ", batch.channels, "×", batch.height, "×",
        batch.width, ", and the network takes ", input, OTHER);
  }
  if (dataset.classes() > model.graph.classes) {
    configs::fail("the data set has ", dataset.classes(), " classes, and the network ",
        model.graph.classes, OTHER);
  }
  auto names = dataset.classNames();
  if (model.graph.classNames.size() == 0) return;
  for (size_t label = 0; label < kj::min(dataset.classes(), names.size()); ++label) {
    bool isKnown = names[label].size() > 0;
    if (!isKnown || inUtf8(names[label]) == inUtf8(model.className(label))) continue;
    configs::fail("label ", label, " is the class ", names[label], " in the data set, but ",
        model.className(label), " in the network", OTHER);
  }
}

constexpr kj::StringPtr OTHER_FOLDER = "choose another folder with --into"_kj;

constexpr kj::StringPtr PAGE = "/evaluation.html"_kj, TABLE = "/evaluation.csv"_kj;

// Returns a file in `folder` that another program has written and that would be replaced. Null if
// there is none, or if `folder` is empty.
kj::Maybe<kj::String> foreignPageIn(kj::StringPtr folder) {
  if (folder.size() == 0) return nullptr;
  auto page = kj::str(folder, PAGE), table = kj::str(folder, TABLE);
  if (isForeignFile(page, SHEET_BEGIN)) return kj::mv(page);
  if (isForeignFile(table, CONFUSION_BEGIN)) return kj::mv(table);
  return nullptr;
}

}  // namespace

kj::MainFunc EvaluateCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Computes the validation figures of a trained network, on the validation images of its run "
      "or on other images. RUN is the folder of a run, a file of weights, or an experiment file "
      "with model.weights.\n"
      "\n"
      "  runner evaluate runs/cifar10_local/last\n"
      "  runner evaluate runs/cifar10_local/1/best.safetensors --into evaluation\n"
      "  runner evaluate runs/cifar10_local/last --data my_photos\n"
      "  runner evaluate configs/cifar10_local.toml --set model.weights=other.safetensors\n"
      "\n"
      "With the instruction set and the batch size of the run, the figures are the same, to the "
      "last digit, as in the run's own validation of these weights. If workers have left or joined "
      "the run, the last digits of the loss may differ.");
  builder
      .addOptionWithArg({"data"}, folderSetter(data, "name a folder, e.g. --data my_photos"), "DIR",
          "evaluate the images in DIR instead: one folder per class, with the name of the class")
      .addOptionWithArg({"top"}, countSetter(topK, 1000), "K",
          "also count the images whose label is among the K largest logits (default: log.top_k, or "
          "5 if there are more classes)")
      .addOptionWithArg({"into"}, folderSetter(into, "name a folder, e.g. --into evaluation"),
          "DIR",
          "write evaluation.html, with all classes, confusions and the worst images, and "
          "evaluation.csv, the confusion matrix, to DIR, which is created if necessary")
      .addOptionWithArg({"worst"}, countSetter(worst, 10000), "N",
          "with --into: how many of the worst images to show (default: 60)")
      .addOption({"json"}, flagSetter(asJson),
          "print one JSON object, with all digits and every cell of the confusion matrix");
  addModel(builder);
  return builder.callAfterParsing(KJ_BIND_METHOD(*this, evaluate)).build();
}

Validity EvaluateCommand::evaluate() {
  KJ_IF_MAYBE(why, chooseWorst()) return kj::mv(*why);
  KJ_IF_MAYBE(path, foreignPageIn(into)) {
    return kj::str(*path,
        " exists, and is not of an evaluation. Choose another folder with --into, ",
        "or remove it");
  }
  auto model = openModelHere();
  KJ_IF_MAYBE(why, chooseTopK(model)) return kj::mv(*why);
  Judgement judgement{uint(topK), size_t(worst)};
  auto judged = judge(model, judgement);
  if (asJson) {
    printJson(judged);
  } else {
    printRow(judged);
  }
  if (into.size() > 0) {
    commandLine.orWrongInput([&]() { makeFolders(into, OTHER_FOLDER); });
    writePages(judged);
  }
  return true;
}

kj::Maybe<kj::String> EvaluateCommand::chooseWorst() {
  bool isGiven = worst != kj::maxValue;
  if (into.size() == 0 && isGiven) {
    return kj::str("--worst needs --into DIR, where evaluation.html shows these images");
  }
  if (!isGiven) worst = into.size() > 0 ? WORST : 0;
  return nullptr;
}

kj::Maybe<kj::String> EvaluateCommand::chooseTopK(const TrainedModel& model) {
  uint classes = model.graph.classes;
  auto option = topK > 0 ? "--top "_kj : "log.top_k = "_kj;
  if (topK == 0) topK = model.experiment().log.topK;
  if (topK >= classes) {
    return kj::str(option, topK, " counts every image: the network has ", classes, " classes");
  }
  if (topK == 0 && classes > TOP_K) topK = TOP_K;
  return nullptr;
}

EvaluateCommand::Judged EvaluateCommand::judge(TrainedModel& model, Judgement& judgement) {
  auto& clock = kj::systemPreciseMonotonicClock();
  auto begin = clock.now();
  kj::String images;
  commandLine.orWrongInput([&]() {
    images = data.size() > 0 ? judgeFolder(model, judgement) : judgeOwn(model, judgement);
  });
  double seconds = (clock.now() - begin) / kj::NANOSECONDS * 1e-9;
  if (judgement.sums.images == 0) {
    commandLine.exitError(kj::str("error: there is nothing to evaluate: ", images,
        " could be used. Name other images with --data"));
  }
  KJ_IF_MAYBE(epoch, model.epoch) images = kj::str(images, ", with the weights of epoch ", *epoch);
  return {model, judgement, kj::mv(images), seconds};
}

void EvaluateCommand::printJson(const Judged& judged) const {
  auto& judgement = judged.judgement;
  auto top = topK == 0
                 ? kj::str()
                 : kj::str(",\"top_k\":", topK, ",\"top_k_accuracy\":", judgement.topKAccuracy());
  kj::Vector<kj::String> cells;
  for (auto& cell: judgement.confusion.cells()) {
    cells.add(kj::str("{\"class\":", inJson(judged.model.className(cell.label)), ",\"label\":",
        cell.label, ",\"predicted\":", cell.predicted, ",\"images\":", cell.images, "}"));
  }
  print(kj::str("{\"weights\":", inJson(judged.model.path), ",\"images\":", judgement.sums.images,
      ",\"loss\":", judgement.loss(), ",\"accuracy\":", judgement.accuracy(), top,
      ",\"seconds\":", judged.seconds, ",\"confusion\":[", kj::strArray(cells, ","), "]}\n"));
}

void EvaluateCommand::printRow(const Judged& judged) const {
  auto& judgement = judged.judgement;
  constexpr kj::StringPtr IMPORTANT[] = {"accuracy"_kj, "loss"_kj};
  tell(kj::str(judged.model.path, " on ", judged.images));
  kj::Vector<kj::String> header, row;
  auto add = [&](kj::StringPtr name, kj::String value) {
    header.add(kj::str(name));
    row.add(kj::mv(value));
  };
  add("loss", figureText(judgement.loss(), DECIMALS));
  add("accuracy", figureText(judgement.accuracy(), DECIMALS));
  if (topK > 0) {
    add(kj::str("top-", topK, " accuracy"), figureText(judgement.topKAccuracy(), DECIMALS));
  }
  add("images", kj::str(judgement.sums.images));
  add("images/s", fixedPoint(judgement.sums.images / judged.seconds, 0));
  printTable({header.releaseAsArray(), kj::arr(row.releaseAsArray()), nullptr}, IMPORTANT);
}

kj::String EvaluateCommand::judgeOwn(TrainedModel& model, Judgement& judgement) {
  auto& config = model.experiment().data;
  configs::Diagnostics diagnostics;
  io::requireSource(config, diagnostics);
  io::requireSourcesHere(config, diagnostics);
  if (diagnostics.count() > 0) commandLine.exitError(diagnostics.format(model.path));
  kj::Own<io::Dataset> dataset;
  kj::Array<kj::String> reports;
  withProgress([&](io::Progress& progress) {
    dataset = io::openDataset(config,
        [&](kj::StringPtr what, uint64_t done, uint64_t total) { progress(what, done, total); });
    requireSameKind(model, *dataset);
    reports = judgeValidation(model, *dataset, judgement, progress);
  });
  for (auto& report: reports) commandLine.warning(report);
  bool isHeldOut = config.validatesOnHeldOut();
  show = [dataset = kj::mv(dataset), isHeldOut](uint64_t number) -> Shown {
    auto& db = isHeldOut ? dataset->training() : dataset->validation();
    auto reader = io::RecordReader::open(db);
    auto record = reader->read(number);
    io::JpegDecoder decoder;
    auto jpeg = record.encoding == io::Encoding::JPEG
                    ? kj::heapArray(record.bytes)
                    : io::encodeJpeg(io::pixelsOf(record, decoder));
    return {kj::mv(jpeg), io::nameOfRecord(db, number, record.id)};
  };
  return kj::str(grouped(judgement.sums.images),
      isHeldOut ? " held-out images of " : " validation images of ", config.dataset->name);
}

kj::String EvaluateCommand::judgeFolder(TrainedModel& model, Judgement& judgement) {
  size_t failed = 0;
  auto leftOut = [&](kj::StringPtr what) {
    commandLine.warning(kj::str("left out: ", what));
    failed++;
  };
  if (io::pathKind(data) != io::PathKind::FOLDER) {
    configs::fail("cannot find the folder ", data, ". Name one with --data");
  }
  auto found = imageFilesAt(data, leftOut);
  auto files = labelledByFolder(model, data, found, leftOut);
  withProgress([&](io::Progress& progress) {
    FileImages images(model, model.batchOf(files.size()));
    images.run(files, [&](const FileAnswer& answer) {
      KJ_IF_MAYBE(problem, answer.problem) {
        leftOut(*problem);
        return;
      }
      int32_t label = files[answer.index].label;
      uint64_t number = answer.index;
      auto labels = kj::arrayPtr(&label, 1);
      auto result = nn::judge(answer.logits, labels);
      requireFinite(result.lossSum, model.path, files[answer.index].path);
      judgement.add(result, answer.logits, labels, kj::arrayPtr(&number, 1));
      progress("evaluating, images", answer.index + 1, files.size());
    });
  });
  if (failed > 0)
    tell(kj::str(counted(failed, "file"), failed == 1 ? " was" : " were", " left out"));
  show = [files = kj::mv(files)](uint64_t number) -> Shown {
    constexpr size_t BYTES_MAX = size_t(1) << 28;
    auto& path = files[number].path;
    kj::Array<kj::byte> jpeg;
    auto shrink = [&]() { jpeg = thumbnailOf(io::readFile(path, BYTES_MAX)); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(shrink)) {
      configs::warn(kj::str("evaluation.html cannot show ", path, ", which ", reasonOf(*e)));
    }
    return {kj::mv(jpeg), kj::str(path)};
  };
  return kj::str(counted(judgement.sums.images, "image"), " of ", data);
}

void EvaluateCommand::writePages(const Judged& judged) {
  auto& model = judged.model;
  auto& judgement = judged.judgement;
  auto cells = judgement.confusion.cells();
  auto names = KJ_MAP(label, kj::zeroTo(model.graph.classes)) {
    return model.className(label);
  };
  kj::Vector<SheetImage> images;
  for (auto& wrong: judgement.wrong()) {
    auto [jpeg, name] = KJ_ASSERT_NONNULL(show)(wrong.number);
    images.add(SheetImage{kj::mv(jpeg),
        kj::str(names[wrong.label], ", taken for ", names[wrong.predicted], " (",
            fixedPoint(wrong.probability, SHORT_DECIMALS), ")"),
        kj::str(name, ", loss ", fixedPoint(wrong.loss, SHORT_DECIMALS))});
  }
  auto summary = kj::str("Accuracy ", figureText(judgement.accuracy(), DECIMALS), ", loss ",
      figureText(judgement.loss(), DECIMALS), " on ", judged.images, ".");
  auto details = kj::str("<h2>Classes</h2>\n", classReport(cells, names),
      "<h2>The worst images: those whose class the network found least likely</h2>\n");
  auto page = kj::str(into, PAGE), table = kj::str(into, TABLE);
  writeWhole(page, contactSheet(kj::str("Evaluation of ", model.path), summary, images, details),
      OTHER_FOLDER);
  writeWhole(table, confusionText(cells), OTHER_FOLDER);
  tell(kj::str("wrote ", page, " and ", table));
}

}  // namespace runner
