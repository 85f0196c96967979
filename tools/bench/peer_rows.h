// tools/bench/peer_rows.h: the comparisons with PyTorch, and how each side is measured.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "tools/bench/process.h"

namespace tools {

using kj::uint;

// One comparison. `ours` runs FILE with settings. `theirs` runs a network of
// tests/peers/networks.py. Both use `threads` threads on a batch of `batch` images.
struct PeerRow {
  // The meaning of a figure, and whether more or less is better. For SPEED and BETTER, PyTorch runs
  // in its faster mode: with or without torch.compile(). For all others it runs without.
  enum What {
    SPEED,      // images/s of training steps, in fp32 or bf16
    BETTER,     // the same in fp32 or bf16, whichever is faster
    WORKERS,    // images/s of two workers together, which exchange gradients, in fp32 or bf16
    MEMORY,     // peak memory, MB; theirs without that for loading PyTorch. Less is better
    DISTURBED,  // the share of SPEED that remains beside a process that fills one core
  } what;
  const char* name;
  const char* doc;
  const char* file;
  const char* network;
  uint threads;
  uint batch;
  uint classes = 0;  // of an assumed data set: see `bench train --classes`

  // Whether the row can be measured in bf16, too, by the name NAME-bf16.
  bool hasBf16() const { return what == SPEED || what == WORKERS; }
};

extern const kj::ArrayPtr<const PeerRow> PEER_ROWS;
// The rows that are measured if none is named.
kj::Vector<kj::StringPtr> usualPeerRows();

// A figure, or why there is none.
struct Figure {
  kj::Maybe<double> value;
  kj::String reason;
  kj::String how{};  // the fastest one of several precisions or modes
};

// Returns the number after `key` in the output of a program, or why there is none.
Figure figureOf(const Ended& ended, kj::StringPtr key);

// A row of the table. Each call runs another program for some seconds. The current folder must be
// the project's root.
struct Contest {
  kj::String name;
  kj::StringPtr unit;                           // images/s, MB, or part
  kj::Function<kj::Maybe<kj::String>()> check;  // returns why ours cannot be measured, or null
  kj::Function<Figure()> ours;
  kj::Function<Figure()> theirs;
};

// Returns the row of this name. NAME-bf16 is the row NAME measured in bf16. Null if there is none.
// Each precision and mode runs for about `seconds`. The time that PyTorch needs for compiling is
// not included. `check` compares our steps with the reference implementation's, in each precision
// that the row measures.
kj::Maybe<kj::Own<Contest>> contestNamed(kj::StringPtr name, kj::StringPtr python, uint seconds);

// The script that measures PyTorch.
constexpr kj::StringPtr PEER_SCRIPT = "tests/peers/train_step.py"_kj;

// Throws if the current folder is not the project's root.
void requirePeerScript();
// Runs PEER_SCRIPT with these options to its end.
Ended runPeerScript(kj::StringPtr python, kj::ArrayPtr<const kj::StringPtr> options);

}  // namespace tools
