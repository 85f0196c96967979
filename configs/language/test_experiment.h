// configs/language/test_experiment.h: a small language of experiments, for the tests of readers.
#pragma once

#include <doctest/doctest.h>

#include "configs/language/reader.h"

namespace configs {

// Returns KJ text as doctest prints it.
inline doctest::String shown(kj::StringPtr text) {
  return text.cStr();
}

// A small experiment with sections like those of a real one.

struct Layer {
  kj::String kind;
  int64_t units = 0;
  kj::Array<Layer> layers;
  kj::Array<kj::Array<Layer>> branches;
};

inline Layer readDense(Reader& reader) {
  Layer result{kj::str("dense")};
  result.units = reader.integer("units", "Outputs.", {.atLeast = 1});
  return result;
}
inline Layer readRelu(Reader& reader) {
  return Layer{kj::str("relu")};
}
inline Layer readRepeat(Reader& reader);
inline Layer readBranches(Reader& reader);

inline constexpr Kind<Layer> LAYER_ROWS[] = {
    {"dense", "A weighted sum.", readDense},
    {"relu", "Negative values become 0.", readRelu},
    {"repeat", "The layers, several times.", readRepeat},
    {"branches", "Lists of layers side by side.", readBranches},
};
inline constexpr kj::ArrayPtr<const Kind<Layer>> LAYERS(LAYER_ROWS, 4);

inline Layer readRepeat(Reader& reader) {
  Layer result{kj::str("repeat")};
  result.units = reader.integer("times", "How often.", {.atLeast = 1, .atMost = 9}, 2);
  result.layers = reader.kinds("layers", "What is repeated.", LAYERS);
  return result;
}
inline Layer readBranches(Reader& reader) {
  Layer result{kj::str("branches")};
  result.branches = reader.kindLists("branches", "One list per branch.", LAYERS);
  return result;
}

struct Encoding {
  const char* name;
  const char* doc;
};
inline constexpr Encoding ENCODING_ROWS[] = {
    {"raw", "Pixels as they are."}, {"jpeg", "Compressed."}};
inline constexpr kj::ArrayPtr<const Encoding> ENCODINGS(ENCODING_ROWS, 2);

struct Rate {
  double learningRate = 0;
  double momentum = 0;
};
inline kj::Own<Rate> readSgd(Reader& reader) {
  auto result = kj::heap<Rate>();
  result->learningRate = reader.real("learning_rate", "Length of a step.", {.above = 0});
  result->momentum = reader.real("momentum", "Of the last step.", {.atLeast = 0, .below = 1}, 0.9);
  return result;
}
inline kj::Own<Rate> readFree(Reader&) {
  return kj::heap<Rate>();
}
inline constexpr Kind<kj::Own<Rate>> RATE_ROWS[] = {
    {"sgd", "Plain descent.", readSgd}, {"free", "No rate | at all.", readFree}};
inline constexpr kj::ArrayPtr<const Kind<kj::Own<Rate>>> RATES(RATE_ROWS, 2);

struct Data {
  const Encoding* encoding;
  const Encoding* given;
  int64_t batchSize;
  kj::Maybe<kj::String> source;
  kj::Array<double> mean;
};
inline Data readData(Reader& reader) {
  Data result;
  result.given = &reader.choose("dataset", "Which records.", ENCODINGS);
  result.encoding = &reader.choose("encoding", "How pixels are kept.", ENCODINGS, "jpeg");
  result.batchSize = reader.integer("batch_size", "Images per step.", {.atLeast = 1}, 128);
  result.source = reader.maybeText("source", "Where they lie.");
  result.mean = reader.reals("mean", "Subtracted, per channel.", {.atLeast = 0, .atMost = 255});
  return result;
}

struct Experiment {
  kj::String name;
  Data data;
  kj::Array<Layer> layers;
  kj::Own<Rate> optimizer;
  kj::Maybe<kj::Own<Rate>> other;
  bool log;
  kj::Array<int64_t> every;
  kj::Array<kj::String> hosts;
};

inline Experiment readExperiment(Reader& reader) {
  Experiment result;
  result.name = reader.text("name", "What the run is called.");
  result.data = reader.section("data", "The records.", readData);
  result.layers = reader.section("model", "The network.",
      [](Reader& reader) { return reader.kinds("layers", "From input to output.", LAYERS); });
  reader.section("train", "How it learns.", [&](Reader& reader) {
    result.optimizer = reader.kind("optimizer", "The update rule.", RATES, "free");
    result.other = reader.maybeKind("other", "A second one.", RATES);
    return true;
  });
  KJ_IF_MAYBE(log, reader.maybeSection("log", "What is printed.", [&](Reader& reader) {
                result.every = reader.integers("every", "Steps.", {.atLeast = 1});
                const kj::StringPtr here[] = {"localhost"};
                result.hosts = reader.texts("hosts", "Who prints.", here);
                return reader.flag("on", "Whether anything is.", true);
              })) {
    result.log = *log;
  } else {
    result.log = false;
  }
  return result;
}

// Returns the errors of a text, as a user sees them.
inline doctest::String errorsOf(kj::StringPtr text) {
  Diagnostics diagnostics;
  auto document = parse("x.toml", text, diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, readExperiment);
  return shown(diagnostics.format("x.toml"));
}

// Reads `text`, which must have no errors.
struct Good {
  Diagnostics diagnostics;
  kj::Own<Document> document;
  Reading reading{diagnostics, {}};
  Experiment experiment;

  explicit Good(kj::StringPtr text)
      : document(parse("x.toml", text, diagnostics)),
        experiment(readDocument(*document, reading, readExperiment)) {
    CHECK(shown(diagnostics.format("x.toml")) == "");
  }
};

}  // namespace configs
