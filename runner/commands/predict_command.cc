#include "runner/commands/predict_command.h"

#include <algorithm>
#include <cmath>

#include "nn/softmax.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/tables/terminal_table.h"
#include "runner/text/json.h"
#include "runner/text/numbers.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

// Decimals of probabilities.
constexpr uint DECIMALS = 4;

// A class that an image may be of.
struct Guess {
  uint label;
  kj::String name;
  double probability;
};

// Returns the `count` most likely classes, the most likely one first.
kj::Array<Guess> guessesOf(
    const TrainedModel& model, kj::ArrayPtr<const float> logits, size_t count) {
  kj::Vector<uint> labels(logits.size());
  for (uint label: kj::indices(logits)) labels.add(label);
  count = kj::min(count, labels.size());
  std::partial_sort(labels.begin(), labels.begin() + count, labels.end(),
      [&](uint a, uint b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  auto [best, sum] = nn::softmaxOf(logits);
  return KJ_MAP(label, labels.asPtr().slice(0, count)) {
    return Guess{
        label, model.className(label), std::exp(double(logits[label]) - logits[best]) / sum};
  };
}

// Returns why `image` has no answer if the network's values for it are not finite.
kj::Maybe<kj::String> whyNotFinite(
    const TrainedModel& model, kj::StringPtr image, kj::ArrayPtr<const float> logits) {
  for (float logit: logits) {
    if (std::isfinite(logit)) continue;
    return kj::str("there is no answer for ", image == "-" ? "standard input"_kj : image,
        ": the weights ", model.path, " give ", logit,
        " for one of its classes. Check the scale of the images (data.augment), or use the weights "
        "of an earlier epoch");
  }
  return nullptr;
}

// Writes the answer for each image, one after another.
class Output {
public:
  virtual ~Output() noexcept(false) = default;
  virtual void add(
      kj::StringPtr image, kj::ArrayPtr<const Guess> guesses, kj::ArrayPtr<const float> logits) = 0;
  // An image without an answer. The reason also goes to standard error.
  virtual void addFailed(kj::StringPtr image, kj::StringPtr problem) {}
  virtual void finish() {}
};

class Table final: public Output {
public:
  void add(
      kj::StringPtr image, kj::ArrayPtr<const Guess> guesses, kj::ArrayPtr<const float>) override {
    auto others = KJ_MAP(guess, guesses.slice(1, guesses.size())) {
      return kj::str(guess.name, " ", fixedPoint(guess.probability, DECIMALS));
    };
    rows.add(kj::arr(kj::str(image), kj::str(guesses[0].name),
        fixedPoint(guesses[0].probability, DECIMALS), kj::strArray(others, ", ")));
  }

  void finish() override {
    constexpr kj::StringPtr IMPORTANT[] = {"class"_kj, "image"_kj, "probability"_kj};
    if (rows.empty()) return;
    TextTable table{
        kj::arr(kj::str("image"), kj::str("class"), kj::str("probability"), kj::str("or else")),
        rows.releaseAsArray(), nullptr};
    printTable(table, IMPORTANT);
  }

private:
  kj::Vector<kj::Array<kj::String>> rows;
};

class JsonLines final: public Output {
public:
  explicit JsonLines(bool withLogits): withLogits(withLogits) {}

  void add(kj::StringPtr image, kj::ArrayPtr<const Guess> guesses,
      kj::ArrayPtr<const float> logits) override {
    auto each = KJ_MAP(guess, guesses) {
      return kj::str("{\"class\":", inJson(guess.name), ",\"label\":", guess.label,
          ",\"probability\":", guess.probability, "}");
    };
    kj::String all;
    if (withLogits) {
      auto numbers = KJ_MAP(logit, logits) {
        return shortest(logit);
      };
      all = kj::str(",\"logits\":[", kj::strArray(numbers, ","), "]");
    }
    print(kj::str(
        "{\"image\":", inJson(image), ",\"top\":[", kj::strArray(each, ","), "]", all, "}\n"));
  }
  void addFailed(kj::StringPtr image, kj::StringPtr problem) override {
    print(kj::str("{\"image\":", inJson(image), ",\"error\":", inJson(problem), "}\n"));
  }

private:
  const bool withLogits;
};

class Csv final: public Output {
public:
  void add(
      kj::StringPtr image, kj::ArrayPtr<const Guess> guesses, kj::ArrayPtr<const float>) override {
    if (isFirst) print("image,rank,label,class,probability\n");
    isFirst = false;
    uint rank = 0;
    for (auto& guess: guesses) {
      print(kj::str(csvField(image), ",", ++rank, ",", guess.label, ",", csvField(guess.name), ",",
          guess.probability, "\n"));
    }
  }

private:
  bool isFirst = true;
};

}  // namespace

// A row of the table of formats.
struct PredictCommand::Format {
  kj::StringPtr name;
  kj::Own<Output> (*make)(bool withLogits);
};

const PredictCommand::Format PredictCommand::FORMATS[] = {
    {"table"_kj, [](bool) -> kj::Own<Output> { return kj::heap<Table>(); }},
    {"jsonl"_kj,
        [](bool withLogits) -> kj::Own<Output> { return kj::heap<JsonLines>(withLogits); }},
    {"csv"_kj, [](bool) -> kj::Own<Output> { return kj::heap<Csv>(); }},
};

kj::MainFunc PredictCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Prints the most likely classes of each image. RUN is the folder of a run, a file of "
      "weights, "
      "or an experiment file with model.weights. IMAGE is a JPEG or PNG file, a folder of such "
      "files, or - for standard input. Images are resized and cropped as in validation.\n"
      "\n"
      "  runner predict runs/cifar10_local/last cat.jpg\n"
      "  runner predict runs/cifar10_local/last photos --format jsonl\n"
      "  curl -s https://example.org/cat.jpg | runner predict runs/cifar10_local/last -\n"
      "\n"
      "Ends with exit code 1 if an image cannot be used, or if the network's values for it are not "
      "finite. The classes of all other images are still printed.");
  builder
      .addOptionWithArg(
          {"top"}, countSetter(top, 1000), "K", "how many classes to name per image (default: 3)")
      .addOptionWithArg({"format"}, KJ_BIND_METHOD(*this, setFormat), "FORMAT",
          "table (default), jsonl: one JSON object per line and image, or csv: one line per image "
          "and class")
      .addOption({"logits"}, flagSetter(withLogits),
          "with --format jsonl: also print the logits of all classes")
      .addOptionWithArg({"batch"}, countSetter(batchSize, 1 << 16), "N",
          "how many images to compute at a time (default: up to 64)");
  addModel(builder);
  return builder.expectOneOrMoreArgs("IMAGE", KJ_BIND_METHOD(*this, addImages))
      .callAfterParsing(KJ_BIND_METHOD(*this, predict))
      .build();
}

Validity PredictCommand::addImages(kj::StringPtr word) {
  if (word.size() == 0) return kj::str("name an image file, a folder, or -");
  named.add(kj::str(word));
  return true;
}

Validity PredictCommand::setFormat(kj::StringPtr word) {
  for (auto& row: FORMATS) {
    if (row.name == word) {
      format = &row;
      return true;
    }
  }
  auto names = KJ_MAP(row, FORMATS) {
    return kj::str(row.name);
  };
  return kj::str("`", word, "` is not a format; choose one of ", kj::strArray(names, ", "));
}

Validity PredictCommand::predict() {
  if (format == nullptr) format = FORMATS;
  if (withLogits && format->name != "jsonl") return kj::str("--logits needs --format jsonl");
  auto model = openModelHere();
  size_t failed = 0, unread = 0;
  auto leftOut = [&](kj::StringPtr what) {
    commandLine.error(kj::str("cannot read ", what));
    unread++;
  };
  kj::Vector<ImageFileName> files;
  for (auto& each: named) {
    auto list = [&]() {
      for (auto& file: imageFilesAt(each, leftOut)) files.add(kj::mv(file));
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(list)) {
      commandLine.error(reasonOf(*e));
      unread++;
    }
  }
  if (files.empty()) commandLine.endWith(WRONG_INPUT);
  auto output = format->make(withLogits);
  size_t batch =
      batchSize > 0 ? kj::min(size_t(batchSize), files.size()) : model.batchOf(files.size());
  commandLine.orWrongInput([&]() {
    FileImages images(model, batch);
    images.run(files, [&](const FileAnswer& answer) {
      if (isInterrupted()) endInterrupted();
      kj::StringPtr path = files[answer.index].path;
      auto refuse = [&](kj::StringPtr problem) {
        failed++;
        commandLine.error(problem);
        output->addFailed(path, problem);
      };
      KJ_IF_MAYBE(problem, answer.problem) {
        refuse(*problem);
      } else KJ_IF_MAYBE(why, whyNotFinite(model, path, answer.logits)) {
        refuse(*why);
      } else {
        output->add(path, guessesOf(model, answer.logits, top), answer.logits);
      }
    });
  });
  output->finish();
  failed += unread;
  if (failed > 0) {
    tell(kj::str(
        grouped(failed), " of ", counted(files.size() + unread, "image"), " could not be used"));
    commandLine.endWith(RUN_FAILED);
  }
  return true;
}

}  // namespace runner
