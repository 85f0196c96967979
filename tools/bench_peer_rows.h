// tools/bench_peer_rows.h: what is compared with PyTorch, and how each side's figure is got.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

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

// images/s, MB, part.
kj::StringPtr unitOf(PeerRow::What what);

// A figure, or why there is none.
struct Figure {
  kj::Maybe<double> value;
  kj::String reason;
  kj::StringPtr precision = ""_kj;  // of a BETTER row: the one that won
};

// Both run other programs for some `seconds` at a time, `theirs` Debian's Python with the scripts
// of tests/peers. The current folder is the project's root.
Figure ours(const PeerRow& row, uint seconds);
Figure theirs(const PeerRow& row, uint seconds);

// Compares our steps with the naive oracle's, in each precision that the row measures: why they
// cannot be measured, or null.
kj::Maybe<kj::String> checkOurs(const PeerRow& row);

// Null if PyTorch is there. Throws if the current folder is not the project's root, or the script
// fails.
kj::Maybe<kj::String> noPeer();

}  // namespace tools
