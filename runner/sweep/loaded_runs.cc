#include "runner/sweep/loaded_runs.h"

#include "runner/experiment/differences.h"
#include "runner/sweep/run_errors.h"

#include <kj/debug.h>
#include <kj/map.h>

#include <algorithm>

namespace runner {

namespace {

constexpr size_t DIGEST_DIGITS = 8;

// Returns the sub-table `key`, and makes it if necessary. Null if `key` is something else.
kj::Maybe<configs::Table&> tableIn(configs::Table& parent, kj::StringPtr key, configs::Span span) {
  for (auto& entry: parent.entries) {
    if (entry.key != key) continue;
    if (!entry.value->content.is<configs::Table>()) return nullptr;
    return entry.value->content.get<configs::Table>();
  }
  configs::Table table;
  table.span = span;
  auto& made =
      parent.entries.add(configs::Entry{kj::str(key), span, configs::newValue(kj::mv(table))});
  made.value->span = span;
  return made.value->content.get<configs::Table>();
}

// Returns the entry at a dotted key. Its points may be those of quoted keys or of tables in tables.
kj::Maybe<configs::Entry&> entryAt(configs::Table& table, kj::StringPtr key) {
  for (auto& entry: table.entries) {
    if (entry.key == key) return entry;
    bool leads = key.startsWith(kj::str(entry.key, "."));
    if (!leads || !entry.value->content.is<configs::Table>()) continue;
    auto& inner = entry.value->content.get<configs::Table>();
    KJ_IF_MAYBE(found, entryAt(inner, key.slice(entry.key.size() + 1))) return *found;
  }
  return nullptr;
}

// Adds one `--sweep` to the grid. It replaces the grid's values of the same key.
void addToGrid(configs::Document& document, kj::StringPtr text, configs::Diagnostics& diagnostics) {
  KJ_IF_MAYBE(entry, configs::parseValues(document, "--sweep", text, diagnostics)) {
    // A range is a single value, not a list.
    auto& values = entry->value->content.get<configs::List>();
    auto& first = values[0]->content;
    if (values.size() == 1 && first.is<configs::Table>() &&
        first.get<configs::Table>().find("from") != nullptr) {
      auto range = kj::mv(values[0]);
      entry->value = kj::mv(range);
    }
    KJ_IF_MAYBE(sweep, tableIn(document.root, "sweep", entry->keySpan)) {
      KJ_IF_MAYBE(grid, tableIn(*sweep, "grid", entry->keySpan)) {
        KJ_IF_MAYBE(known, entryAt(*grid, entry->key)) {
          known->keySpan = entry->keySpan;
          known->value = kj::mv(entry->value);
        } else {
          grid->entries.add(kj::mv(*entry));
        }
      }
    }
  }
}

// Returns the tree of one run: the file's without [sweep], with the settings laid over it.
kj::Own<configs::Document> documentOf(const configs::Document& file,
    kj::ArrayPtr<const Setting> settings, configs::Diagnostics& diagnostics) {
  auto document = kj::heap<configs::Document>();
  document->file = kj::str(file.file);
  document->complete = file.complete;
  document->root.span = file.root.span;
  for (auto& entry: file.root.entries) {
    if (entry.key == "sweep") continue;
    document->root.entries.add(
        configs::Entry{kj::str(entry.key), entry.keySpan, configs::clone(*entry.value)});
  }
  // A key may lie in a table that another setting has. The table goes first.
  kj::Vector<const Setting*> sorted;
  for (auto& setting: settings) sorted.add(&setting);
  std::stable_sort(sorted.begin(), sorted.end(),
      [](const Setting* a, const Setting* b) { return a->key->key.size() < b->key->key.size(); });
  for (auto setting: sorted) {
    auto& key = *setting->key;
    if (!configs::putAt(document->root, key.key, key.span, *setting->value)) {
      diagnostics.error(key.span,
          kj::str("`", key.key, "` names a key inside a value that is not a table"),
          "configs/REFERENCE.md lists all keys");
    }
  }
  return document;
}

// Reads only the section `key` with `read`. The rest of the file may be wrong.
template <typename Read>
auto readAlone(const configs::Document& file, kj::StringPtr key, Read read,
    configs::Diagnostics& diagnostics) {
  configs::Document alone;
  alone.root.span = file.root.span;
  KJ_IF_MAYBE(entry, file.root.find(key)) {
    alone.root.entries.add(
        configs::Entry{kj::str(entry->key), entry->keySpan, configs::clone(*entry->value)});
  }
  configs::Reading reading{diagnostics, {}};
  return configs::readDocument(
      alone, reading, [&](configs::Reader& reader) { return reader.section(key, "", read); });
}

// The rest of the file may be right only together with swept values.
SweepConfig readSweep(const configs::Document& file, configs::Diagnostics& diagnostics) {
  return readAlone(file, "sweep", SweepConfig::read, diagnostics);
}

// Returns the first value in `value` that comes from a `--set`, or null.
kj::Maybe<const configs::Value&> overrideIn(const configs::Value& value) {
  if (configs::isOverride(value.span)) return value;
  if (!value.content.is<configs::Table>()) return nullptr;
  for (auto& entry: value.content.get<configs::Table>().entries) {
    KJ_IF_MAYBE(found, overrideIn(*entry.value)) return *found;
  }
  return nullptr;
}

// Reports each `--set` of a swept key, because the sweep would replace its value in every run.
void checkOverrides(
    const SweepConfig& sweep, const configs::Document& file, configs::Diagnostics& diagnostics) {
  auto check = [&](const SweptKey& key, bool inGrid) {
    KJ_IF_MAYBE(value, configs::valueAt(file.root, key.key)) {
      KJ_IF_MAYBE(set, overrideIn(*value)) {
        diagnostics.error(set->span, kj::str("`", key.key, "` is swept"),
            inGrid ? kj::str("write --sweep ", key.key, "=", configs::print(*value),
                         " to replace all its values")
                   : kj::str("leave it out, or change it in [sweep]"));
      }
    }
  };
  for (auto& key: sweep.grid) check(key, true);
  for (auto& key: sweep.zip) check(key, false);
  for (auto& key: sweep.draw) check(key, false);
}

void checkLauncher(const Experiment& experiment, const configs::Document& document,
    configs::Diagnostics& diagnostics) {
  if (experiment.cluster.launcher->sweeps) return;
  configs::Span span;
  KJ_IF_MAYBE(value, configs::valueAt(document.root, "cluster.launcher")) span = value->span;
  diagnostics.error(span,
      kj::str("launcher `", experiment.cluster.launcher->name, "` cannot run a sweep"),
      "write launcher = \"local\"");
}

kj::String folderNameOf(kj::ArrayPtr<const Setting> settings,
    kj::ArrayPtr<const kj::String> shortKeys, const LoadedExperiment& loaded) {
  return kj::str(nameOf(settings, shortKeys), "-", loaded.digest.slice(0, DIGEST_DIGITS));
}

}  // namespace

void addRecords(LoadedRuns& all) {
  kj::Vector<LoadedRun> runs;
  kj::HashSet<kj::String> names;
  for (auto& run: all.runs) {
    if (run.problem == nullptr) addRecords(run.loaded);
    if (all.sweep != nullptr) {
      run.name = folderNameOf(run.settings, all.shortKeys, run.loaded);
      if (names.contains(run.name)) continue;
      names.insert(kj::str(run.name));
    }
    runs.add(kj::mv(run));
  }
  all.runs = runs.releaseAsArray();
}

LoadedRuns loadRuns(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides,
    kj::ArrayPtr<const kj::StringPtr> sweeps, kj::Maybe<uint> columns) {
  LoadedRuns all;
  configs::Diagnostics diagnostics;
  all.document = loadDocument(path, overrides, diagnostics);
  for (auto text: sweeps) addToGrid(*all.document, text, diagnostics);

  kj::Vector<LoadedRun> runs;
  if (all.document->root.find("sweep") == nullptr) {
    auto document = documentOf(*all.document, nullptr, diagnostics);
    runs.add(LoadedRun{nullptr, nullptr, readExperiment(kj::mv(document), diagnostics)});
  } else {
    auto sweep = readSweep(*all.document, diagnostics);
    checkOverrides(sweep, *all.document, diagnostics);
    auto keys = KJ_MAP(key, sweep.keys())->kj::StringPtr {
      return key->key;
    };
    all.shortKeys = shortKeys(keys);
    kj::Array<Settings> list;
    if (diagnostics.count() == 0) {
      list = listRuns(sweep);
    } else {
      // Errors in the rest of the file are reported too. Keys that are missing there may be swept.
      auto rest = documentOf(*all.document, nullptr, diagnostics);
      rest->complete = false;
      readExperiment(kj::mv(rest), diagnostics);
    }
    kj::HashSet<kj::String> known;
    RunErrors errors;
    for (auto& settings: list) {
      configs::Diagnostics own;
      // A run that is kept takes its settings along. They stay at their address.
      kj::ArrayPtr<const Setting> ofRun = settings;
      auto document = documentOf(*all.document, ofRun, own);
      auto loaded = readExperiment(kj::mv(document), own);
      KJ_IF_MAYBE(experiment, loaded.experiment) {
        checkLauncher(*experiment, *loaded.document, own);
        auto name = folderNameOf(settings, all.shortKeys, loaded);
        // The digest does not contain the place of the data, and the name may contain it only in
        // part.
        auto identity = kj::str(name, '\0', loaded.resolved);
        if (!known.contains(identity)) {
          known.insert(kj::mv(identity));
          runs.add(LoadedRun{kj::mv(settings), kj::mv(name), kj::mv(loaded)});
        }
      }
      errors.add(ofRun, kj::mv(own));
    }
    errors.tell(all.shortKeys, diagnostics);
    all.sweep = kj::mv(sweep);
  }
  if (diagnostics.count() > 0) {
    all.errors = diagnostics.format(path, columns);
  } else {
    all.runs = runs.releaseAsArray();
  }
  return all;
}

LoadedData loadData(kj::StringPtr path, kj::Maybe<uint> columns) {
  LoadedData loaded;
  configs::Diagnostics diagnostics;
  loaded.document = loadDocument(path, nullptr, diagnostics);
  kj::Maybe<SweepConfig> sweep;
  kj::Array<Settings> list;
  if (loaded.document->root.find("sweep") != nullptr) {
    sweep = readSweep(*loaded.document, diagnostics);
    if (diagnostics.count() == 0) list = listRuns(KJ_ASSERT_NONNULL(sweep));
  }
  if (diagnostics.count() == 0) {
    auto first = list.size() > 0 ? list[0].asPtr() : kj::ArrayPtr<const Setting>();
    auto run = documentOf(*loaded.document, first, diagnostics);
    loaded.config = readAlone(*run, "data", io::DataConfig::read, diagnostics);
  }
  if (diagnostics.count() > 0) {
    loaded.config = nullptr;
    loaded.errors = diagnostics.format(path, columns);
  }
  return loaded;
}

}  // namespace runner
