#include "tools/bench_peers.h"

#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "runner/files.h"
#include "runner/log_lines.h"
#include "tools/bench_columns.h"
#include "tools/bench_command.h"

namespace tools {
namespace {

// A figure with as many digits as tell something.
kj::String shown(double value) {
  return runner::fixedPoint(value, value < 10 ? 3 : value < 1000 ? 1 : 0);
}

// Of each round; without a peer only ours.
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

kj::Array<kj::String> cellsOf(const PeerRow& row, kj::ArrayPtr<const kj::StringPtr> figures) {
  kj::Vector<kj::String> cells;
  cells.add(kj::str(row.name));
  cells.add(kj::str(unitOf(row.what)));
  for (auto figure: figures) cells.add(kj::str(figure));
  return cells.releaseAsArray();
}

// A figure of one side, for the line of a round.
kj::String told(const Figure& figure) {
  auto value = shown(KJ_ASSERT_NONNULL(figure.value));
  return figure.precision == "" ? kj::mv(value) : kj::str(value, " (", figure.precision, ")");
}

void tell(const PeerRow& row, kj::StringPtr what) {
  runner::writeQuietly(STDERR_FILENO, kj::str(row.name, " ", what, "\n"));
}

}  // namespace

kj::MainFunc BenchPeers::getMain() {
  kj::Vector<kj::String> known;
  for (auto& row: PEER_ROWS) known.add(kj::str("  ", row.name, ": ", row.doc, "\n"));
  doc = kj::str(
      "Trains the same networks with this program and with PyTorch (Debian's "
      "python3-torch; scripts in tests/peers), in alternation, and prints the medians of "
      "both and of the ratios, ours / theirs, of the rounds. Each measurement is a "
      "process of its own. Ours is `bench train`, which first is checked; of two workers it "
      "is `runner run`. A row that fails says why, and the exit code is 1. Run it from the "
      "project's folder, with nothing else on the machine.\n"
      "\n"
      "  bench peers\n"
      "  bench peers mlp lenet --rounds 3 --seconds 2\n"
      "\n"
      "Of `memory` less is better; of all others more. NAME is one of\n\n",
      kj::strArray(known, ""));
  return kj::MainBuilder(commandLine, "bench", doc)
      .addOptionWithArg({"rounds"}, numberSetter(rounds), "N", "pairs of each row (default: 5)")
      .addOptionWithArg({"seconds"}, numberSetter(seconds), "S", "of each measurement (default: 8)")
      .expectZeroOrMoreArgs("NAME", KJ_BIND_METHOD(*this, addRow))
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

kj::MainBuilder::Validity BenchPeers::addRow(kj::StringPtr word) {
  for (auto& row: PEER_ROWS) {
    if (row.name == word) {
      rows.add(&row);
      return true;
    }
  }
  return kj::str("no such row");
}

kj::MainBuilder::Validity BenchPeers::run() {
  if (rows.size() == 0) {
    for (auto& row: PEER_ROWS) rows.add(&row);
  }
  auto missing = noPeer();
  kj::Vector<kj::Array<kj::String>> cells;
  for (auto row: rows) cells.add(measure(*row, missing));
  auto header = kj::arr(kj::str("row"), kj::str("unit"), kj::str("ours"), kj::str("PyTorch"),
      kj::str("ratio"), kj::str("lowest"), kj::str("highest"));
  runner::print(inColumns({kj::mv(header), cells.releaseAsArray(), nullptr}, 2));
  if (failed) commandLine.endWith(runner::RUN_FAILED);
  return true;
}

kj::Array<kj::String> BenchPeers::measure(const PeerRow& row, kj::Maybe<kj::String>& missing) {
  Rounds all;
  kj::Maybe<kj::String> failure = checkOurs(row);
  for (uint round = 1; round <= rounds && failure == nullptr; ++round) {
    auto our = ours(row, seconds);
    if (our.value == nullptr) {
      failure = kj::mv(our.reason);
      break;
    }
    auto head = kj::str(round, "/", rounds, ": ours ", told(our));
    if (missing != nullptr) {
      all.ours.add(KJ_ASSERT_NONNULL(our.value));
      tell(row, kj::str(head, " ", unitOf(row.what)));
      continue;
    }
    auto their = theirs(row, seconds);
    if (their.value == nullptr) {
      failure = kj::str("PyTorch: ", their.reason);
      break;
    }
    all.ours.add(KJ_ASSERT_NONNULL(our.value));
    all.theirs.add(KJ_ASSERT_NONNULL(their.value));
    all.ratios.add(all.ours.back() / all.theirs.back());
    tell(row, kj::str(head, ", PyTorch ", told(their), " ", unitOf(row.what), ", ratio ",
                  shown(all.ratios.back())));
  }
  KJ_IF_MAYBE(reason, failure) {
    failed = true;
    tell(row, kj::str("failed: ", *reason));
    if (all.ours.size() == 0) return cellsOf(row, {kj::str("failed: ", *reason), "", "", "", ""});
  }
  auto our = shown(median(all.ours));
  KJ_IF_MAYBE(reason, missing) {
    return cellsOf(row, {our, kj::str("skipped: ", *reason), "", "", ""});
  }
  auto ratio = shown(median(all.ratios));
  return cellsOf(row,
      {our, shown(median(all.theirs)), ratio, shown(all.ratios.front()), shown(all.ratios.back())});
}

}  // namespace tools
