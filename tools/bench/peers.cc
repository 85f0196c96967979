// `bench peers`: measures our program and PyTorch in alternation.
#include <kj/debug.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "runner/system/output.h"
#include "runner/text/fitted_text.h"
#include "runner/text/numbers.h"
#include "tools/bench/benches.h"
#include "tools/bench/command.h"
#include "tools/bench/figures.h"
#include "tools/bench/gpu_peers.h"
#include "tools/bench/torch_python.h"

namespace tools {
namespace {

// Returns a figure with as many digits as are meaningful.
kj::String shown(double value) {
  return runner::fixedPoint(value, value < 10 ? 3 : value < 1000 ? 1 : 0);
}

// The figures of each round. Without a peer, only ours.
struct Rounds {
  kj::Vector<double> ours;
  kj::Vector<double> theirs;
  kj::Vector<double> ratios;

  double lowest() const { return *std::min_element(ratios.begin(), ratios.end()); }
  double highest() const { return *std::max_element(ratios.begin(), ratios.end()); }
};

// Returns a figure of one side for the line of a round.
kj::String told(const Figure& figure) {
  auto value = shown(KJ_ASSERT_NONNULL(figure.value));
  return figure.how == "" ? kj::mv(value) : kj::str(value, " (", figure.how, ")");
}

template <typename... Words>
void tell(Words&&... words) {
  runner::writeQuietly(STDERR_FILENO, kj::str(words..., "\n"));
}

// KJ wraps longer lines, without an indent.
constexpr uint HELP_COLUMNS = 79;

class BenchPeers {
public:
  explicit BenchPeers(runner::CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity run();
  // Returns the rows that a word names: one row, or all rows of a network on a GPU. Empty if there
  // is no such row.
  kj::Vector<kj::Own<Contest>> contestsOf(kj::StringPtr word);
  // Finds PyTorch, prints its version on stderr, and keeps it. Returns why there is no peer, or
  // null.
  kj::Maybe<kj::String> findPeer();
  // Measures in rounds: ours, theirs, ours, theirs. Without a peer, only ours. Adds the figures to
  // `all` and returns why a measurement failed, or null. A failure ends the row, but its earlier
  // rounds count.
  kj::Maybe<kj::String> measure(Contest& contest, bool hasPeer, Rounds& all, kj::String& how);
  // Returns the cells of a row, and prints a row of JSON. `missing` says why there is no peer.
  kj::Array<kj::String> report(Contest& contest, const kj::Maybe<kj::String>& missing);

  runner::CommandLine& commandLine;
  kj::String doc;                   // of the sub-command
  kj::Vector<kj::StringPtr> names;  // empty: all rows
  kj::StringPtr chosenPython;       // of --python; empty: the newest PyTorch on the path
  kj::String python;                // the one in use
  kj::String version;               // of its PyTorch; empty: there is none
  bool onGpu = false;
  bool json = false;
  bool failed = false;  // any row failed
  uint rounds = 5;
  uint seconds = 8;
};

kj::MainFunc BenchPeers::getMain() {
  kj::Vector<kj::String> known;
  for (auto& row: PEER_ROWS) {
    auto line = kj::str("  ", row.name, ": ", row.doc);
    known.add(kj::str(runner::wrapped(line, HELP_COLUMNS), "\n"));
  }
  auto gpuNames = KJ_MAP(network, GPU_NETWORKS) {
    return kj::str(network.name);
  };
  doc = kj::str(
      "Trains the same networks with this program and with PyTorch (scripts in tests/peers), in "
      "alternation. Prints the medians of both, and of the ratios ours / theirs, over the rounds. "
      "Each measurement is a separate process. Ours is `bench train`, which first checks its "
      "values; with two workers it is `runner run`. PyTorch runs eager and with "
      "torch.compile(), and the faster one counts. For two-workers, memory and disturbed it only "
      "runs eager. A row that fails says why, and makes the exit code 1. Run it from the "
      "project's folder, with nothing else running on the machine.\n"
      "\n"
      "PyTorch is the newest one that loads, from the active virtual environment, every python3 on "
      "the path, and Debian's package python3-torch. --python or the environment variable "
      "RUNNER_PYTHON names another one.\n"
      "\n"
      "  bench peers\n"
      "  bench peers mlp lenet-bf16 --rounds 3 --seconds 2\n"
      "  bench peers lenet-compiled --device cuda --python ~/environments/torch\n"
      "\n"
      "For `memory`, less is better; for all others, more. NAME is one of\n"
      "\n",
      kj::strArray(known, ""),
      "\nAll but airbench94, memory and disturbed have a second name that ends in -bf16.\n"
      "\nWith --device cuda, no data set is needed and our values are not checked. PyTorch's "
      "process stays through all rounds of a row: the time for compiling is not counted, but "
      "limited. NAME is one of ",
      kj::strArray(gpuNames, ", "),
      ", or one of these with -plain (PyTorch eager, tf32), -autocast (channels_last, bf16), "
      "-compiled (the same with torch.compile, in the faster one of two modes).\n");
  return kj::MainBuilder(commandLine, "bench", doc)
      .addOptionWithArg(
          {"rounds"}, numberSetter(rounds), "N", "number of pairs per row (default: 5)")
      .addOptionWithArg(
          {"seconds"}, numberSetter(seconds), "S", "seconds per measurement (default: 8)")
      .addOptionWithArg({"device"}, choiceSetter(onGpu, "cuda", "cpu"), "cpu|cuda",
          "which rows are measured: those for a CPU (the default) or for a GPU")
      .addOptionWithArg({"python"}, wordSetter(chosenPython), "PATH",
          "a Python that has PyTorch, or the folder of a virtual environment")
      .addOption({"json"}, flagSetter(json), "prints one line of JSON per row instead of a table")
      .expectZeroOrMoreArgs("NAME",
          [this](kj::StringPtr word) {
            names.add(word);
            return true;
          })
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

kj::Vector<kj::Own<Contest>> BenchPeers::contestsOf(kj::StringPtr word) {
  if (onGpu) return gpuContests(word, python, seconds);
  kj::Vector<kj::Own<Contest>> contests;
  KJ_IF_MAYBE(contest, contestNamed(word, python, seconds)) contests.add(kj::mv(*contest));
  return contests;
}

kj::Maybe<kj::String> BenchPeers::findPeer() {
  requirePeerScript();
  auto search = findTorch(chosenPython);
  for (auto& note: search.notes) tell(note);
  KJ_IF_MAYBE(newest, search.newest) {
    python = kj::mv(newest->program);
    version = kj::mv(newest->version);
    tell("PyTorch ", version, " of ", python);
    return onGpu ? noGpuPeer(python) : nullptr;
  }
  return search.whyNone();
}

Validity BenchPeers::run() {
  if (names.size() == 0) {
    if (onGpu) {
      for (auto& network: GPU_NETWORKS) names.add(network.name);
    } else {
      names = usualPeerRows();
    }
  }
  for (auto name: names) {
    if (contestsOf(name).size() == 0) return kj::str(name, ": no such row");
  }
  auto missing = findPeer();
  kj::Vector<kj::Own<Contest>> contests;
  for (auto name: names) {
    for (auto& contest: contestsOf(name)) contests.add(kj::mv(contest));
  }
  kj::Vector<kj::Array<kj::String>> rows;
  for (auto& contest: contests) {
    // destroyed after its row, with all programs that it has started
    auto measured = kj::mv(contest);
    rows.add(report(*measured, missing));
  }
  auto header = cells("row", "unit", "ours", kj::str("PyTorch", version == "" ? "" : " ", version),
      "ratio", "lowest", "highest");
  if (!json) runner::print(inColumns({kj::mv(header), rows.releaseAsArray(), nullptr}, 2));
  if (failed) commandLine.endWith(runner::RUN_FAILED);
  return true;
}

kj::Maybe<kj::String> BenchPeers::measure(
    Contest& contest, bool hasPeer, Rounds& all, kj::String& how) {
  KJ_IF_MAYBE(reason, contest.check()) return kj::mv(*reason);
  for (uint round = 1; round <= rounds; ++round) {
    auto our = contest.ours();
    if (our.value == nullptr) return kj::mv(our.reason);
    double ours = KJ_ASSERT_NONNULL(our.value);
    auto head = kj::str(contest.name, ' ', round, "/", rounds, ": ours ", told(our));
    if (!hasPeer) {
      all.ours.add(ours);
      tell(head, " ", contest.unit);
      continue;
    }
    auto their = contest.theirs();
    if (their.value == nullptr) return kj::str("PyTorch: ", their.reason);
    if (::strstr(how.cStr(), their.how.cStr()) == nullptr) {
      how = kj::str(how, how.size() > 0 ? " or " : "", their.how);
    }
    all.ours.add(ours);
    all.theirs.add(KJ_ASSERT_NONNULL(their.value));
    all.ratios.add(ours / all.theirs.back());
    tell(head, ", PyTorch ", told(their), " ", contest.unit, ", ratio ", shown(all.ratios.back()));
  }
  return nullptr;
}

kj::Array<kj::String> BenchPeers::report(Contest& contest, const kj::Maybe<kj::String>& missing) {
  Rounds all;
  kj::String how;
  const auto failure = measure(contest, missing == nullptr, all, how);
  KJ_IF_MAYBE(reason, failure) {
    failed = true;
    tell(contest.name, " failed: ", *reason);
  }
  // The figures of the row, with their keys in JSON.
  kj::Vector<std::pair<kj::StringPtr, kj::String>> figures;
  auto add = [&](kj::StringPtr key, double value) { figures.add(key, shown(value)); };
  if (all.ours.size() > 0) add("ours", medianOf(all.ours));
  if (all.theirs.size() > 0) {
    add("theirs", medianOf(all.theirs));
    add("ratio", medianOf(all.ratios));
    add("lowest", all.lowest());
    add("highest", all.highest());
  }
  kj::StringPtr noteKey = failure == nullptr ? "skipped" : "failed", note;
  for (auto* reason: {&missing, &failure}) {
    KJ_IF_MAYBE(text, *reason) note = *text;
  }
  if (json) {
    Json line;
    line.addText("row", contest.name);
    line.addText("unit", contest.unit);
    line.add("rounds", all.ours.size());
    for (auto& [key, value]: figures) line.add(key, value);
    if (how.size() > 0) line.addText("how", how);
    if (note.size() > 0) line.addText(noteKey, note);
    if (version.size() > 0) line.addText("pytorch", version);
    runner::print(kj::str(line.object(), "\n"));
    return nullptr;
  }
  kj::Vector<kj::String> row;
  row.add(kj::str(contest.name));
  row.add(kj::str(contest.unit));
  for (auto& [key, value]: figures) {
    bool hasMode = key == "theirs" && how.size() > 0;
    row.add(hasMode ? kj::str(value, " (", how, ")") : kj::mv(value));
  }
  // A row of which some rounds succeeded has only figures.
  if (figures.size() < 5) row.add(kj::str(noteKey, ": ", note));
  while (row.size() < 7) row.add(kj::str());
  return row.releaseAsArray();
}

}  // namespace

kj::MainFunc benchPeers(runner::CommandLine& commandLine) {
  return mainOf<BenchPeers>(commandLine);
}

}  // namespace tools
