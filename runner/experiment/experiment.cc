#include "runner/experiment/experiment.h"

#include "configs/language/word.h"
#include "runner/experiment/experiment_checks.h"
#include "runner/experiment/sweep.h"

namespace runner {

Experiment Experiment::read(configs::Reader& reader) {
  Experiment experiment;
  experiment.name = reader.text("name",
      "Name of the experiment, and of the folder with its runs. At most 100 letters, digits, `_`, "
      "`-` and `.`, starting with a letter or digit.");
  experiment.data = reader.section("data",
      "Which records are read, how many per step, and how images are augmented.",
      io::DataConfig::read);
  experiment.model = reader.section("model",
      "The network, by name or layer by layer, and the initial values of its parameters.",
      [&](configs::Reader& section) {
        auto model = nn::ModelConfig::read(section);
        experiment.start = StartWeights::read(section);
        return model;
      });
  experiment.train = reader.section(
      "train", "How long to train, and how parameters are updated.", [&](configs::Reader& section) {
        return TrainConfig::read(section, *experiment.model.conventions);
      });
  experiment.kvstore = reader.section("kvstore",
      "The parameter server: when the gradients of several workers become one update.",
      rpc::KvStoreConfig::read);
  experiment.cluster = reader.section("cluster", "The roles of a run, and who starts them.",
      [&](configs::Reader& section) { return ClusterConfig::read(section, experiment.kvstore); });
  experiment.log = reader.section("log", "What is logged, and how often.", LogConfig::read);
  experiment.checkpoint = reader.section("checkpoint",
      "When a run is saved, so that `runner run --resume` can continue it after an interruption. "
      "Does not change results.",
      CheckpointConfig::read);
  KJ_IF_MAYBE(expectations,
      reader.maybeSection("expect",
          "What a run must reach. If a run misses an expectation, `runner` reports this and ends "
          "with exit code 3. Expectations do not change a run.",
          readExpectations)) {
    experiment.expectations = kj::mv(*expectations);
  }
  experiment.published = reader.maybeSection("published",
      "Results that others published for this experiment. Tables and reports show them beside the "
      "results of a run. They do not change the run.",
      Published::read);

  experiment.continued = reader.maybeSection("continued",
      "Where a run stood when `runner run --resume` continued it with another number of workers, "
      "at the end of an epoch. `--resume` writes this section into the experiment.toml of the run. "
      "Leave it out of other files.",
      Continued::read);

  // loadRuns() reads [sweep] and replaces values of the file by those of each run. Here it is read
  // for the reference.
  reader.maybeSection("sweep",
      "Turns the file into many runs: one for every combination of the values of `grid`, with "
      "every row of `zip` and every draw. Each run has its own folder, "
      "runs/<name>/<settings>-<digest>. Finished runs are not repeated.",
      SweepConfig::read);

  auto letter = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
  };
  bool good =
      experiment.name.size() > 0 && experiment.name.size() <= 100 && letter(experiment.name[0]);
  for (char c: experiment.name) good = good && (letter(c) || c == '_' || c == '-' || c == '.');
  if (!good && reader.has("name")) {
    reader.error("name", kj::str("`", experiment.name, "` cannot name a folder"),
        "use up to 100 letters, digits, `_`, `-` and `.`, beginning with a letter or digit");
  }
  checkTogether(experiment, reader);
  // If numbers are wrong, anything computed from them would only report the same error again.
  if (!reader.isManual() && reader.diagnostics().count() == 0) {
    checkNetwork(experiment, reader.diagnostics());
  }
  return experiment;
}

kj::String languageReference() {
  return configs::printReference("The language of experiment files",
      "The [glossary](../ARCHITECTURE.md#glossary) explains words such as slice, round, pass and "
      "role. A file may begin with `extends = \"base.toml\"`, a path relative to the file. It then "
      "takes all values of that file, and overrides some of them.",
      Experiment::read);
}

kj::Array<rpc::Key> storeKeys(const Experiment& experiment, const nn::Graph& graph) {
  return KJ_MAP(key, graph.keys) {
    auto rule = experiment.train.rules.of(key);
    bool splittable = rule.isFrozen() || !rule.optimizer->needsWholeKeys();
    return rpc::Key{kj::str(key.name), key.offset, key.size, splittable};
  };
}

rpc::Placement placementOf(const Experiment& experiment, const nn::Graph& graph) {
  return rpc::place(storeKeys(experiment, graph), experiment.kvstore.slice_bytes,
      experiment.shards(), *experiment.kvstore.placement);
}

}  // namespace runner
