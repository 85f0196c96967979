#include "tools/results/index.h"

namespace tools {

namespace {

struct CombineWord {
  const char* name;
  const char* doc;
  Combine combine;
};

constexpr CombineWord COMBINE_WORDS[] = {
    {"mean", "The mean over the workers.", Combine::MEAN},
    {"max", "Of each accuracy, the greatest among the workers.", Combine::MAX},
};

constexpr configs::IntegerLimits COUNT{.atLeast = 1, .atMost = 1000000000};

// A control character would break a row of a table.
void checkOneLine(configs::Reader& reader, kj::StringPtr key, kj::StringPtr text) {
  for (unsigned char c: text) {
    if (c >= ' ' && c != 0x7f) continue;
    reader.error(key, "this text contains a control character", "write one line of plain text");
    return;
  }
}

kj::String line(configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc) {
  auto text = reader.text(key, doc);
  checkOneLine(reader, key, text);
  return text;
}

kj::Maybe<kj::String> maybeLine(configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc) {
  auto text = reader.maybeText(key, doc);
  KJ_IF_MAYBE(t, text) checkOneLine(reader, key, *t);
  return text;
}

Machines readMachines(configs::Reader& reader) {
  Machines machines;
  machines.cluster = line(reader, "cluster", "Name of the cluster, which runs refer to.");
  machines.processor = line(reader, "processor", "Processor of each machine.");
  machines.cores = reader.integer("cores", "Cores of each machine that a run may use.", COUNT);
  machines.memory = line(reader, "memory", "Memory of each machine, with its unit.");
  machines.network = line(reader, "network", "Network between the roles of a run.");
  KJ_IF_MAYBE(software,
      maybeLine(reader, "software", "Compiler and libraries, with their versions.")) {
    machines.software = kj::mv(*software);
  }
  return machines;
}

Dataset readDataset(configs::Reader& reader) {
  Dataset dataset;
  dataset.name = line(reader, "name", "Name of the data set, as in experiment files.");
  dataset.classes = reader.integer("classes", "Number of classes.", COUNT);
  dataset.image = line(reader, "image", "Size and channels, such as `28×28×1`.");
  dataset.training = reader.integer("training", "Number of training images.", COUNT);
  dataset.validation = reader.integer("validation", "Number of validation images.", COUNT);
  return dataset;
}

// What a run is checked against.
struct Known {
  kj::ArrayPtr<const Machines> machines;
  kj::ArrayPtr<const kj::StringPtr> logs;
  kj::FunctionParam<bool(kj::StringPtr path)>& isFile;
  uint64_t training;  // images of the experiment's data set
};

template <typename Names>
void checkListed(configs::Reader& reader, kj::StringPtr key, kj::StringPtr name, Names&& names,
    kj::StringPtr help) {
  if (reader.isManual() || !reader.has(key)) return;
  for (auto& listed: names) {
    if (listed == name) return;
  }
  reader.error(key, kj::str("there is no `", name, "`"), help);
}

// `config` begins with the path of the experiment file.
void checkConfig(
    configs::Reader& reader, kj::StringPtr config, kj::FunctionParam<bool(kj::StringPtr)>& isFile) {
  auto file = kj::heapString(config.slice(0, config.findFirst(' ').orDefault(config.size())));
  if (isFile(file)) return;
  reader.error("config", kj::str("there is no file `", file, "`"),
      "begin with the path of the experiment file, relative to the page's folder");
}

IndexedRun readRun(configs::Reader& reader, const Known& known) {
  IndexedRun run;
  run.log = line(reader, "log", "Name of the log: `x` for `results/x.log.xz`.");
  KJ_IF_MAYBE(name,
      maybeLine(reader, "name", "Name of the run in tables. Default: the value of `log`.")) {
    run.name = kj::mv(*name);
  } else {
    run.name = kj::str(run.log);
  }
  run.config =
      maybeLine(reader, "config", "The experiment file and the settings that replaced its values.");
  run.cluster =
      line(reader, "cluster", "Where the run took place: the `cluster` of one of the machines.");
  run.machines = reader.integer("machines", "Number of these machines.", COUNT, 1);
  run.devices =
      reader.integer("devices", "Number of devices that trained, on all machines.", COUNT, 1);
  run.batchSize = reader.integer("batch_size", "Images per step and device.", COUNT);
  run.kvstore = line(reader, "kvstore", "The kvstore mode.");
  run.epochImages = reader
                        .maybeInteger("epoch_images",
                            "Images per epoch of all workers together. Default: the number of "
                            "training images of the data set.",
                            COUNT)
                        .orDefault(known.training);
  run.published = reader.maybeSection("published",
      "Results that others published for this experiment, as in an experiment file but without "
      "`where`.",
      runner::Published::read);
  run.difference =
      maybeLine(reader, "difference", "One sentence on why our figures differ, or may differ.");

  KJ_IF_MAYBE(config, run.config) checkConfig(reader, *config, known.isFile);
  KJ_IF_MAYBE(published, run.published) {
    checkOneLine(reader, "published", published->source);
    for (auto& row: published->rows) {
      if (row.where.size() == 0) continue;
      reader.error("published", "these figures belong to one run, so `where` has no effect here",
          "leave it out");
    }
  }
  checkListed(reader, "log", run.log, known.logs,
      kj::str("keep it as results/", run.log, ".log.xz: tools/keep_log.py RUN ", run.log));
  checkListed(
      reader, "cluster", run.cluster,
      KJ_MAP(m, known.machines)->kj::StringPtr { return m.cluster; },
      "name one of [[machines]], or add it there");
  return run;
}

IndexedExperiment readExperiment(
    configs::Reader& reader, const Known& known, kj::ArrayPtr<const Dataset> datasets) {
  IndexedExperiment experiment;
  experiment.name = line(reader, "name",
      "Name of the experiment. On the page, its table is between markers with this name.");
  auto dataset = line(reader, "dataset", "The `name` of one of the data sets.");
  experiment.combine =
      reader
          .choose("op", "How the accuracies of the workers are combined.",
              kj::arrayPtr(COMBINE_WORDS, kj::size(COMBINE_WORDS)), kj::StringPtr("mean"))
          .combine;
  experiment.epochs =
      KJ_MAP(epoch, reader.integers("epochs",
                        "Epochs that the table shows if a log has them. Default: all.", COUNT)) {
    return uint(epoch);
  };
  auto knownHere = known;
  for (auto& row: datasets) {
    if (row.name == dataset) knownHere.training = row.training;
  }
  experiment.runs = reader.sections("runs", "The runs that the table shows, in this order.",
      [&](configs::Reader& section) { return readRun(section, knownHere); });

  checkListed(
      reader, "dataset", dataset, KJ_MAP(d, datasets)->kj::StringPtr { return d.name; },
      "name one of [[datasets]], or add it there");
  for (auto taken: {MACHINES_TABLE, DATASETS_TABLE, PERFORMANCE_TABLE}) {
    if (experiment.name == taken) {
      reader.error(
          "name", kj::str("`", taken, "` is another table of the page"), "choose another name");
    }
  }
  return experiment;
}

// Reports errors that only show over all experiments together.
void checkWhole(
    configs::Reader& reader, const ResultsIndex& index, kj::ArrayPtr<const kj::StringPtr> logs) {
  for (size_t i: kj::indices(index.experiments)) {
    for (size_t j = 0; j < i; j++) {
      if (index.experiments[i].name == index.experiments[j].name) {
        reader.error("experiments",
            kj::str("two experiments are named `", index.experiments[i].name, "`"),
            "each table has one place on the page: choose another name");
      }
    }
  }
  for (auto& log: logs) {
    uint uses = 0;
    for (auto& experiment: index.experiments) {
      for (auto& run: experiment.runs) uses += run.log == log;
    }
    if (uses == 0) {
      reader.error("experiments", kj::str("no run has the log `", log, "`"),
          kj::str("add the run, or remove results/", log, ".log.xz"));
    }
    if (uses > 1) {
      reader.error("experiments", kj::str(uses, " runs have the log `", log, "`"),
          "a log belongs to one run: keep the log of the other run under another name, or leave "
          "that run out");
    }
  }
}

}  // namespace

ResultsIndex ResultsIndex::read(configs::Reader& reader, kj::ArrayPtr<const kj::StringPtr> logs,
    kj::FunctionParam<bool(kj::StringPtr path)> isFile) {
  ResultsIndex index;
  index.machines = reader.sections("machines", "The machines that runs used.", readMachines);
  index.datasets = reader.sections("datasets", "The data sets that runs trained on.", readDataset);
  index.experiments = reader.sections("experiments",
      "The experiments whose results the page shows.", [&](configs::Reader& section) {
        return readExperiment(section, {index.machines, logs, isFile, 1}, index.datasets);
      });
  if (!reader.isManual()) checkWhole(reader, index, logs);
  return index;
}

kj::String indexReference() {
  return configs::printReference("The index of the results", "", [](configs::Reader& reader) {
    return ResultsIndex::read(reader, nullptr, [](auto) { return false; });
  });
}

}  // namespace tools
