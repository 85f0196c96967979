// tools/bench/peer_rows.h: what is compared with PyTorch, and how each side's figure is got.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "tools/bench/process.h"

namespace tools {

using kj::uint;

// One comparison. `ours` runs FILE with settings, `theirs` a network of tests/peers/networks.py;
// both with `threads` threads on a batch of `batch` images.
struct PeerRow {
  // What a figure is, and what of it is better.
  enum What {
    SPEED,      // images/s of training steps, in fp32
    BF16,       // the same in bf16
    BETTER,     // the same in fp32 or bf16, whichever is faster
    WORKERS,    // images/s of two workers together, which exchange gradients
    MEMORY,     // MB at most; of theirs without what loading PyTorch takes. Less is better
    DISTURBED,  // the part of SPEED that remains beside a process that fills one core
  } what;
  const char* name;
  const char* doc;
  const char* file;
  const char* network;
  uint threads;
  uint batch;
  uint classes = 0;  // of a data set that need not be there: see `bench train --classes`
};

extern const kj::ArrayPtr<const PeerRow> PEER_ROWS;

// A figure, or why there is none.
struct Figure {
  kj::Maybe<double> value;
  kj::String reason;
  kj::StringPtr how = ""_kj;  // of several precisions or modes the one that won
};

// The number behind `key` in what a program printed, or why there is none.
Figure figureOf(const Ended& ended, kj::StringPtr key);
// What a program complained of: we say it first, Python last.
kj::String reasonOf(const Ended& ended);

// A line of the table, to be measured: each call runs other programs for some seconds. The current
// folder is the project's root.
struct Contest {
  kj::String name;
  kj::StringPtr unit;                           // images/s, MB, part
  kj::Function<kj::Maybe<kj::String>()> check;  // why ours cannot be measured, or null
  kj::Function<Figure()> ours;
  kj::Function<Figure()> theirs;
};

// Measurements take some `seconds`. The check compares our steps with the naive oracle's, in each
// precision that the row measures.
kj::Own<Contest> contestOf(const PeerRow& row, kj::StringPtr python, uint seconds);

constexpr kj::StringPtr PEER_SCRIPT = "tests/peers/train_step.py"_kj;

// Throws if the current folder is not the project's root.
void requirePeerScript();
Ended runPeerScript(kj::StringPtr python, kj::ArrayPtr<const kj::StringPtr> options);

}  // namespace tools
