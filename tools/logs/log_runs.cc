#include "tools/logs/log_runs.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "configs/language/failure.h"

namespace tools {
namespace {

using Names = kj::ArrayPtr<const kj::String>;

// Where one run ends and the next begins in a file: the last line of the first run, and the line
// that cannot belong to it.
struct Seam {
  const LogLine* before;
  const LogLine* after;

  // The index of `after` among the recognised lines.
  size_t index;
};

// Reads the lines of one run in order, and detects when another run begins.
class RunWatch {
public:
  explicit RunWatch(Names metrics): metrics(metrics) {}

  // Returns the earlier line that proves that `line` belongs to another run, or null. `line` then
  // belongs to the current run.
  const LogLine* follow(const LogLine& line) {
    auto conflict = findConflict(line);
    if (conflict != nullptr) {
      // From here on, the other nodes are in the new run too.
      newest = {};
      lateUnranked = nullptr;
    }
    KJ_IF_MAYBE(rank, line.rank) {
      auto& said = newest.findOrCreate(*rank, [&]() { return decltype(newest)::Entry{*rank, {}}; });
      if (!said.empty() && said.back()->epoch != line.epoch) said.clear();
      if (said.empty() || countsForTable(line)) said.add(&line);
    } else if (line.epoch >= 2) {
      lateUnranked = &line;
    }
    return conflict;
  }

private:
  Names metrics;  // of the table

  // Whether the table has a column for the figure of `line`.
  bool countsForTable(const LogLine& line) const {
    if (line.kind == LogLineKind::TIME) return true;
    for (auto& metric: metrics) {
      if (isCalled(line.metric, metric)) return true;
    }
    return false;
  }

  // The lines of each node about its newest epoch. These are few, however many metrics there are.
  kj::HashMap<uint, kj::Vector<const LogLine*>> newest;

  // The last line without a node and of epoch 2 or later. Workers that cannot be told apart may be
  // one epoch apart (one still validates while another trains), but not two.
  const LogLine* lateUnranked = nullptr;

  const LogLine* findConflict(const LogLine& line) {
    KJ_IF_MAYBE(rank, line.rank) {
      KJ_IF_MAYBE(said, newest.find(*rank)) {
        if (line.epoch < said->back()->epoch) return said->back();
        if (!countsForTable(line)) return nullptr;
        for (auto earlier: *said) {
          bool again = earlier->epoch == line.epoch && earlier->kind == line.kind &&
                       earlier->metric == line.metric;
          if (again) return earlier;
        }
      }
      return nullptr;
    }
    return line.epoch == 0 ? lateUnranked : nullptr;
  }
};

kj::Vector<Seam> findSeams(kj::ArrayPtr<const LogLine> lines, Names metrics) {
  kj::Vector<Seam> seams;
  RunWatch watch(metrics);
  for (size_t i: kj::indices(lines)) {
    auto conflict = watch.follow(lines[i]);
    if (conflict != nullptr) seams.add(Seam{conflict, &lines[i], i});
  }
  return seams;
}

kj::String describe(const LogLine& line) {
  KJ_IF_MAYBE(rank, line.rank) {
    return kj::str("Node[", *rank, "] Epoch[", line.epoch, "]");
  }
  return kj::str("Epoch[", line.epoch, "]");
}

}  // namespace

kj::ArrayPtr<const LogLine> chooseRun(kj::ArrayPtr<const LogLine> lines, kj::StringPtr name,
    Names metrics, kj::Maybe<uint> wanted, kj::StringPtr wayOut) {
  auto seams = findSeams(lines, metrics);
  size_t runs = seams.size() + 1;
  KJ_IF_MAYBE(run, wanted) {
    if (*run < 1 || *run > runs) {
      configs::fail(name, " holds ", runs, runs == 1 ? " run" : " runs", ": there is no run ", *run,
          ". Runs count from 1.");
    }
    size_t begin = *run == 1 ? 0 : seams[*run - 2].index;
    size_t end = *run == runs ? lines.size() : seams[*run - 1].index;
    return lines.slice(begin, end);
  }
  if (runs > 1) {
    auto& seam = seams[0];
    configs::fail(name, " holds ", runs, " runs: line ", seam.before->number, " is ",
        describe(*seam.before), ", and line ", seam.after->number, " is ", describe(*seam.after),
        " again. ",
        wayOut.size() > 0 ? kj::str(wayOut) : kj::str("Choose one with --run 1 to --run ", runs),
        ".");
  }
  return lines;
}

}  // namespace tools
