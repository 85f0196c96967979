#include "runner/tables/log_runs.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "configs/language/failure.h"

namespace runner {
namespace {

using Names = kj::ArrayPtr<const kj::String>;

// Where a run gives way to the next in one file: its last line and the line that cannot belong to
// it.
struct Seam {
  const LogLine* before;
  const LogLine* after;

  // Place of `after` among the recognised lines.
  size_t index;
};

// Walks through the lines of one run and tells when another begins.
class RunWatch {
public:
  explicit RunWatch(Names metrics): metrics(metrics) {}

  // The earlier line that shows `line` to be of another run, or null; `line` then counts as seen.
  const LogLine* follow(const LogLine& line) {
    auto conflict = findConflict(line);
    if (conflict != nullptr) {
      // The other nodes too are in the new run from here on.
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

  // Whether the table has a column for what `line` says.
  bool countsForTable(const LogLine& line) const {
    if (line.kind == LogLineKind::TIME) return true;
    for (auto& metric: metrics) {
      if (isCalled(line.metric, metric)) return true;
    }
    return false;
  }

  // What each node has said of its newest epoch: few lines, however many metrics there are.
  kj::HashMap<uint, kj::Vector<const LogLine*>> newest;

  // The last line without a node and of epoch 2 or later. Workers that cannot be told apart may be
  // an epoch apart (one still validates while another trains), but not two.
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
          "; runs count from 1.");
    }
    size_t begin = *run == 1 ? 0 : seams[*run - 2].index;
    size_t end = *run == runs ? lines.size() : seams[*run - 1].index;
    return lines.slice(begin, end);
  }
  if (runs > 1) {
    auto& seam = seams[0];
    configs::fail(name, " holds ", runs, " runs: line ", seam.before->number, " is ",
        describe(*seam.before), ", and line ", seam.after->number, " is ", describe(*seam.after),
        " again; ",
        wayOut.size() > 0 ? kj::str(wayOut) : kj::str("choose one with --run 1 to --run ", runs),
        ".");
  }
  return lines;
}

}  // namespace runner
