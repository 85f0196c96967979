// Loads experiment files, and says which of them train the same.
#include <kj/debug.h>

#include "io/checksum.h"
#include "runner/experiment/experiment.h"
#include "runner/system/files.h"

namespace runner {

namespace {

constexpr uint64_t TEXT_BYTES_MAX = 1 << 24;

// Sections that do not affect how a run goes.
constexpr kj::StringPtr BESIDE_THE_RUN[] = {
    "checkpoint"_kj, "expect"_kj, "log"_kj, "published"_kj, "sweep"_kj};

// Returns the entries of `table` without those of `keys`.
configs::Table without(kj::ArrayPtr<const kj::StringPtr> keys, const configs::Table& table) {
  configs::Table rest;
  for (auto& entry: table.entries) {
    bool kept = true;
    for (auto key: keys) kept = kept && entry.key != key;
    if (kept) rest.entries.add(configs::Entry{kj::str(entry.key), {}, clone(*entry.value)});
  }
  return rest;
}

// Leaves keys out of a section.
void leaveOut(
    configs::Table& experiment, kj::StringPtr section, kj::ArrayPtr<const kj::StringPtr> keys) {
  auto& entry = KJ_ASSERT_NONNULL(experiment.find(section));
  auto& table = entry.value->content.get<configs::Table>();
  table = without(keys, table);
}

// Two experiments with the same settings and the same records train the same.
configs::Table settingsOf(const configs::Table& resolved) {
  auto trained = without(BESIDE_THE_RUN, resolved);
  // Where data, weights and roles are, and how roles reach each other.
  constexpr kj::StringPtr OF_DATA[] = {
      "source"_kj, "validation_source"_kj, "labels"_kj, "validation_labels"_kj, "class_names"_kj};
  constexpr kj::StringPtr OF_MODEL[] = {"weights"_kj};
  constexpr kj::StringPtr OF_CLUSTER[] = {"launcher"_kj, "image"_kj, "kubernetes"_kj, "port"_kj,
      "hosts"_kj, "interface"_kj, "ssh"_kj, "tls"_kj, "mpirun"_kj, "instruction_set"_kj,
      "on_loss"_kj, "elastic"_kj, "stall_timeout_s"_kj};
  leaveOut(trained, "data", OF_DATA);
  leaveOut(trained, "model", OF_MODEL);
  leaveOut(trained, "cluster", OF_CLUSTER);
  // How long roles wait for each other changes no result. The digests of many runs have the
  // defaults.
  auto& cluster = KJ_ASSERT_NONNULL(trained.find("cluster")).value->content.get<configs::Table>();
  KJ_ASSERT_NONNULL(cluster.find("start_timeout_s")).value =
      configs::newValue<int64_t>(ClusterConfig::START_TIMEOUT_S);
  KJ_ASSERT_NONNULL(cluster.find("silence_timeout_s")).value =
      configs::newValue<int64_t>(ClusterConfig::SILENCE_TIMEOUT_S);
  return trained;
}

// Returns settings without what may change between two epochs of a run.
kj::String settingsWithoutRolesOf(const configs::Table& settings) {
  constexpr kj::StringPtr SECTIONS[] = {"continued"_kj};
  constexpr kj::StringPtr OF_CLUSTER[] = {"workers"_kj, "servers"_kj};
  auto kept = without(SECTIONS, settings);
  leaveOut(kept, "cluster", OF_CLUSTER);
  return configs::print(kept);
}

}  // namespace

kj::Own<configs::Document> loadDocument(kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, configs::Diagnostics& diagnostics) {
  auto filesystem = kj::newDiskFilesystem();
  return configs::load(
      filesystem->getRoot(), path, overrides, diagnostics, filesystem->getCurrentPath());
}

LoadedExperiment readExperiment(
    kj::Own<configs::Document> document, configs::Diagnostics& diagnostics) {
  LoadedExperiment loaded;
  loaded.document = kj::mv(document);
  size_t before = diagnostics.count();
  configs::Reading reading{diagnostics, {}};
  auto experiment = configs::readDocument(*loaded.document, reading, Experiment::read);
  if (diagnostics.count() > before) return loaded;
  // Which rows are about this run depends on all of its values.
  KJ_IF_MAYBE(published, experiment.published) {
    published->keepRowsOf(reading.resolved, diagnostics);
    if (diagnostics.count() > before) return loaded;
  }
  loaded.experiment = kj::mv(experiment);
  loaded.resolved = configs::print(reading.resolved);
  auto settings = settingsOf(reading.resolved);
  loaded.settings = configs::print(settings);
  loaded.digest = io::sha256Hex(loaded.settings.asBytes());
  loaded.settingsWithoutRoles = settingsWithoutRolesOf(settings);
  return loaded;
}

LoadedExperiment loadExperiment(
    kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides, kj::Maybe<uint> columns) {
  configs::Diagnostics diagnostics;
  auto document = loadDocument(path, overrides, diagnostics);
  KJ_IF_MAYBE(sweep, document->root.find("sweep")) {
    diagnostics.error(sweep->keySpan, "this file is a sweep, but a single run is needed here",
        "use the experiment.toml in the folder of one of its runs");
  }
  auto loaded = readExperiment(kj::mv(document), diagnostics);
  if (diagnostics.count() > 0) {
    loaded.experiment = nullptr;
    loaded.errors = diagnostics.format(path, columns);
  }
  return loaded;
}

bool isResolved(kj::StringPtr path) {
  auto loaded = loadExperiment(path, nullptr);
  return loaded.errors.size() == 0 && readRegular(path, TEXT_BYTES_MAX) == loaded.resolved;
}

void addRecords(LoadedExperiment& loaded) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  kj::Vector<kj::String> parts;
  if (!io::areRecordsKnown(experiment.data)) parts.add(io::recordsSha256(experiment.data));
  KJ_IF_MAYBE(start, experiment.start) parts.add(weightsSha256(*start));
  if (parts.empty()) return;
  auto all = kj::str(io::sha256Hex(loaded.settings.asBytes()), ' ', kj::strArray(parts, " "));
  loaded.digest = io::sha256Hex(all.asBytes());
}

bool differOnlyInRoles(const LoadedExperiment& a, const LoadedExperiment& b) {
  if (a.settingsWithoutRoles != b.settingsWithoutRoles) return false;
  auto& first = KJ_ASSERT_NONNULL(a.experiment);
  auto& second = KJ_ASSERT_NONNULL(b.experiment);
  KJ_IF_MAYBE(ours, first.start) {
    KJ_IF_MAYBE(theirs, second.start) {
      if (weightsSha256(*ours) != weightsSha256(*theirs)) return false;
    } else {
      return false;
    }
  } else if (second.start != nullptr) {
    return false;
  }
  return io::areRecordsKnown(first.data) ||
         io::recordsSha256(first.data) == io::recordsSha256(second.data);
}

}  // namespace runner
