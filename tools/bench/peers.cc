#include "tools/bench/peers.h"

#include <capnp/compat/json.h>
#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "runner/system/files.h"
#include "runner/text/fitted_text.h"
#include "runner/text/numbers.h"
#include "tools/bench/columns.h"
#include "tools/bench/command.h"
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
};

double median(kj::Vector<double>& values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

kj::Array<kj::String> cellsOf(const Contest& contest, kj::ArrayPtr<const kj::StringPtr> figures) {
  kj::Vector<kj::String> cells;
  cells.add(kj::str(contest.name));
  cells.add(kj::str(contest.unit));
  for (auto figure: figures) cells.add(kj::str(figure));
  return cells.releaseAsArray();
}

// Returns a figure of one side for the line of a round.
kj::String told(const Figure& figure) {
  auto value = shown(KJ_ASSERT_NONNULL(figure.value));
  return figure.how == "" ? kj::mv(value) : kj::str(value, " (", figure.how, ")");
}

void tell(const Contest& contest, kj::StringPtr what) {
  runner::writeQuietly(STDERR_FILENO, kj::str(contest.name, " ", what, "\n"));
}

// Returns one line of JSON. `note` says why figures are missing.
kj::String jsonOf(const Contest& contest, Rounds& all, kj::StringPtr version, kj::StringPtr how,
    kj::StringPtr noteKey, kj::StringPtr note) {
  auto quoted = [](kj::StringPtr text) {
    return capnp::JsonCodec().encode(capnp::Text::Reader(text));
  };
  kj::Vector<kj::String> pairs;
  auto add = [&](kj::StringPtr key, kj::StringPtr value) {
    pairs.add(kj::str('"', key, "\":", value));
  };
  add("row", quoted(contest.name));
  add("unit", quoted(contest.unit));
  add("rounds", kj::str(all.ours.size()));
  if (all.ours.size() > 0) add("ours", shown(median(all.ours)));
  if (all.theirs.size() > 0) {
    add("theirs", shown(median(all.theirs)));
    add("ratio", shown(median(all.ratios)));
    add("lowest", shown(all.ratios.front()));
    add("highest", shown(all.ratios.back()));
  }
  if (how.size() > 0) add("how", quoted(how));
  if (note.size() > 0) add(noteKey, quoted(note));
  if (version.size() > 0) add("pytorch", quoted(version));
  return kj::str('{', kj::strArray(pairs, ","), "}\n");
}

// KJ wraps longer lines, without an indent.
constexpr uint HELP_COLUMNS = 79;

}  // namespace

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
      "Each measurement is a process of its own. Ours is `bench train`, which first checks its "
      "values; with two workers it is `runner run`. A row that fails says why, and makes the exit "
      "code 1. Run it from the project's folder, with nothing else running on the machine.\n"
      "\n"
      "PyTorch is the newest one that loads, from the active virtual environment, every python3 on "
      "the path, and Debian's package python3-torch. --python or the environment variable "
      "RUNNER_PYTHON names another one.\n"
      "\n"
      "  bench peers\n"
      "  bench peers mlp lenet --rounds 3 --seconds 2\n"
      "  bench peers lenet-compiled --device cuda --python ~/environments/torch\n"
      "\n"
      "For `memory`, less is better; for all others, more. NAME is one of\n"
      "\n",
      kj::strArray(known, ""),
      "\nWith --device cuda, no data set is needed and our values are not checked. PyTorch's "
      "process stays through all rounds of a row: the time for compiling is not counted, but "
      "limited. NAME is one of ",
      kj::strArray(gpuNames, ", "),
      ", or one of these with -plain (PyTorch as it comes, tf32), -autocast (channels_last, bf16), "
      "-compiled (the same with torch.compile, in the faster one of two modes).\n");
  return kj::MainBuilder(commandLine, "bench", doc)
      .addOptionWithArg(
          {"rounds"}, numberSetter(rounds), "N", "number of pairs per row (default: 5)")
      .addOptionWithArg(
          {"seconds"}, numberSetter(seconds), "S", "seconds per measurement (default: 8)")
      .addOptionWithArg({"device"}, KJ_BIND_METHOD(*this, setDevice), "cpu|cuda",
          "which rows are measured: those for a CPU (the default) or for a GPU")
      .addOptionWithArg(
          {"python"},
          [this](kj::StringPtr word) {
            chosenPython = word;
            return true;
          },
          "PATH", "a Python that has PyTorch, or the folder of a virtual environment")
      .addOption(
          {"json"},
          [this]() {
            json = true;
            return true;
          },
          "prints one line of JSON per row instead of a table")
      .expectZeroOrMoreArgs("NAME",
          [this](kj::StringPtr word) {
            names.add(word);
            return true;
          })
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

kj::MainBuilder::Validity BenchPeers::setDevice(kj::StringPtr word) {
  onGpu = word == "cuda";
  return onGpu || word == "cpu" ? kj::MainBuilder::Validity(true) : kj::str("not cpu or cuda");
}

kj::Vector<kj::Own<Contest>> BenchPeers::contestsOf(kj::StringPtr word) {
  if (onGpu) return gpuContests(word, python, seconds);
  kj::Vector<kj::Own<Contest>> contests;
  for (auto& row: PEER_ROWS) {
    if (word == row.name) contests.add(contestOf(row, python, seconds));
  }
  return contests;
}

kj::Maybe<kj::String> BenchPeers::findPeer() {
  requirePeerScript();
  auto search = findTorch(chosenPython);
  auto say = [](auto&&... words) { runner::writeQuietly(STDERR_FILENO, kj::str(words..., "\n")); };
  for (auto& note: search.notes) say(note);
  KJ_IF_MAYBE(newest, search.newest) {
    python = kj::mv(newest->program);
    version = kj::mv(newest->version);
    say("PyTorch ", version, " of ", python);
    return onGpu ? noGpuPeer(python) : nullptr;
  }
  return search.whyNone();
}

kj::MainBuilder::Validity BenchPeers::run() {
  if (names.size() == 0) {
    if (onGpu) {
      for (auto& network: GPU_NETWORKS) names.add(network.name);
    } else {
      for (auto& row: PEER_ROWS) names.add(row.name);
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
  kj::Vector<kj::Array<kj::String>> cells;
  for (auto& contest: contests) {
    // destroyed after its row, with all programs that it has started
    auto measured = kj::mv(contest);
    cells.add(measure(*measured, missing));
  }
  auto header = kj::arr(kj::str("row"), kj::str("unit"), kj::str("ours"),
      kj::str("PyTorch", version == "" ? "" : " ", version), kj::str("ratio"), kj::str("lowest"),
      kj::str("highest"));
  if (!json) runner::print(inColumns({kj::mv(header), cells.releaseAsArray(), nullptr}, 2));
  if (failed) commandLine.endWith(runner::RUN_FAILED);
  return true;
}

kj::Array<kj::String> BenchPeers::measure(Contest& contest, kj::Maybe<kj::String>& missing) {
  Rounds all;
  kj::StringPtr how = "";
  kj::Maybe<kj::String> failure = contest.check();
  for (uint round = 1; round <= rounds && failure == nullptr; ++round) {
    auto our = contest.ours();
    if (our.value == nullptr) {
      failure = kj::mv(our.reason);
      break;
    }
    auto head = kj::str(round, "/", rounds, ": ours ", told(our));
    if (missing != nullptr) {
      all.ours.add(KJ_ASSERT_NONNULL(our.value));
      tell(contest, kj::str(head, " ", contest.unit));
      continue;
    }
    auto their = contest.theirs();
    if (their.value == nullptr) {
      failure = kj::str("PyTorch: ", their.reason);
      break;
    }
    how = their.how;
    all.ours.add(KJ_ASSERT_NONNULL(our.value));
    all.theirs.add(KJ_ASSERT_NONNULL(their.value));
    all.ratios.add(all.ours.back() / all.theirs.back());
    tell(contest, kj::str(head, ", PyTorch ", told(their), " ", contest.unit, ", ratio ",
                      shown(all.ratios.back())));
  }
  KJ_IF_MAYBE(reason, failure) {
    failed = true;
    tell(contest, kj::str("failed: ", *reason));
  }
  if (json) {
    auto note = failure.map([](auto& reason) -> kj::StringPtr { return reason; });
    if (note == nullptr) note = missing.map([](auto& reason) -> kj::StringPtr { return reason; });
    runner::print(jsonOf(
        contest, all, version, how, failure == nullptr ? "skipped" : "failed", note.orDefault("")));
    return nullptr;
  }
  KJ_IF_MAYBE(reason, failure) {
    if (all.ours.size() == 0) {
      return cellsOf(contest, {kj::str("failed: ", *reason), "", "", "", ""});
    }
  }
  auto our = shown(median(all.ours));
  KJ_IF_MAYBE(reason, missing) {
    return cellsOf(contest, {our, kj::str("skipped: ", *reason), "", "", ""});
  }
  auto ratio = shown(median(all.ratios));
  return cellsOf(contest,
      {our, shown(median(all.theirs)), ratio, shown(all.ratios.front()), shown(all.ratios.back())});
}

}  // namespace tools
