// tools/bench/peers.h: `bench peers`: measures our program and PyTorch in alternation.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/system/command_line.h"
#include "tools/bench/peer_rows.h"

namespace tools {

class BenchPeers {
public:
  explicit BenchPeers(runner::CommandLine& commandLine): commandLine(commandLine) {}

  // Returns the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity setDevice(kj::StringPtr word);
  kj::MainBuilder::Validity run();
  // Returns the rows that a word names: one row, or all rows of a network on a GPU. Empty if there
  // is no such row.
  kj::Vector<kj::Own<Contest>> contestsOf(kj::StringPtr word);
  // Finds PyTorch, prints its version on stderr, and keeps it. Returns why there is no peer, or
  // null.
  kj::Maybe<kj::String> findPeer();
  // Measures in rounds: ours, theirs, ours, theirs. Without a peer, only ours. Returns a line of
  // JSON, or the cells of a row. A failure ends the row, but its earlier rounds count.
  kj::Array<kj::String> measure(Contest& contest, kj::Maybe<kj::String>& missing);

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

}  // namespace tools
