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

// Of each round.
struct Rounds {
  kj::Vector<double> ours;
  kj::Vector<double> theirs;
  kj::Vector<double> ratios;

  void add(double our, double their) {
    ours.add(our);
    theirs.add(their);
    ratios.add(our / their);
  }
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

kj::Array<kj::String> notMeasured(const PeerRow& row, kj::StringPtr reason) {
  return cellsOf(row, {kj::str("skipped: ", reason), "", "", "", ""});
}

}  // namespace

kj::MainFunc BenchPeers::getMain() {
  kj::Vector<kj::String> known;
  for (auto& row: PEER_ROWS) known.add(kj::str("  ", row.name, ": ", row.doc, "\n"));
  doc = kj::str(
      "Trains the same networks with this program and with PyTorch (Debian's "
      "python3-torch; scripts in tests/peers), in alternation, and prints the medians of "
      "both and of the ratios, ours / theirs, of the rounds. Each measurement is a "
      "process of its own. Ours is `bench train`; of two workers it is `runner run`. Run "
      "it from the project's folder, with nothing else on the machine.\n"
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
  for (auto row: rows) {
    KJ_IF_MAYBE(reason, missing) {
      cells.add(notMeasured(*row, *reason));
    } else {
      cells.add(measure(*row));
    }
  }
  auto header = kj::arr(kj::str("row"), kj::str("unit"), kj::str("ours"), kj::str("PyTorch"),
      kj::str("ratio"), kj::str("lowest"), kj::str("highest"));
  runner::print(inColumns({kj::mv(header), cells.releaseAsArray(), nullptr}, 2));
  return true;
}

kj::Array<kj::String> BenchPeers::measure(const PeerRow& row) {
  Rounds all;
  for (uint round = 1; round <= rounds; ++round) {
    auto our = ours(row, seconds);
    if (our.value == nullptr) return notMeasured(row, our.reason);
    auto their = theirs(row, seconds);
    if (their.value == nullptr) return notMeasured(row, kj::str("PyTorch: ", their.reason));
    all.add(KJ_ASSERT_NONNULL(our.value), KJ_ASSERT_NONNULL(their.value));
    runner::writeQuietly(
        STDERR_FILENO, kj::str(row.name, " ", round, "/", rounds, ": ours ", shown(all.ours.back()),
                           ", PyTorch ", shown(all.theirs.back()), " ", unitOf(row.what),
                           ", ratio ", shown(all.ratios.back()), "\n"));
  }
  auto ratio = shown(median(all.ratios));
  return cellsOf(row, {shown(median(all.ours)), shown(median(all.theirs)), ratio,
                          shown(all.ratios.front()), shown(all.ratios.back())});
}

}  // namespace tools
