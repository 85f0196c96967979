// An experiment file: TOML, its keys and values, its sweep, and the messages about it.
#include "configs/language/document.h"
#include "configs/language/reader.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/sweep.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

namespace {

// The runs of a file with [sweep], without their experiments.
void readSweep(const configs::Document& document, configs::Diagnostics& diagnostics) {
  KJ_IF_MAYBE(entry, document.root.find("sweep")) {
    configs::Document alone;
    alone.root.entries.add(
        configs::Entry{kj::str(entry->key), entry->keySpan, configs::clone(*entry->value)});
    configs::Reading reading{diagnostics, {}};
    auto config = configs::readDocument(alone, reading, [](configs::Reader& reader) {
      return reader.section("sweep", "", runner::SweepConfig::read);
    });
    if (diagnostics.count() == 0) runner::listRuns(config);
  }
}

}  // namespace

void feed(Bytes input) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", kj::str(input.asChars()), diagnostics);
  if (diagnostics.count() == 0) {
    // The printed text is the file of a run.
    auto text = configs::print(document->root);
    auto again = configs::parse("x.toml", text, diagnostics);
    must(diagnostics.count() == 0 && configs::print(again->root) == text, text);
  }
  readSweep(*document, diagnostics);
  auto loaded = runner::readExperiment(kj::mv(document), diagnostics);
  diagnostics.format("x.toml");
  diagnostics.format("x.toml", 40u);
}

}  // namespace fuzz
