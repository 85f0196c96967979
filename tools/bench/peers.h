// tools/bench/peers.h: `bench peers`: ours and PyTorch, in alternation.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/system/command_line.h"
#include "tools/bench/peer_rows.h"

namespace tools {

class BenchPeers {
public:
  explicit BenchPeers(runner::CommandLine& commandLine): commandLine(commandLine) {}

  // Of the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity setDevice(kj::StringPtr word);
  kj::MainBuilder::Validity run();
  // Of a word: a row, or of a GPU's network all. None: there is no such row.
  kj::Vector<kj::Own<Contest>> contestsOf(kj::StringPtr word);
  // Finds PyTorch, tells its version on stderr, and keeps it. Returns why there is no peer, or
  // null.
  kj::Maybe<kj::String> findPeer();
  // A line of JSON, or the cells of a row, measured in rounds: ours, theirs, ours, theirs; ours
  // alone where there is no peer. What goes wrong ends the row, whose rounds until then count.
  kj::Array<kj::String> measure(Contest& contest, kj::Maybe<kj::String>& missing);

  runner::CommandLine& commandLine;
  kj::String doc;                   // of the sub-command
  kj::Vector<kj::StringPtr> names;  // empty: all
  kj::StringPtr chosenPython;       // of --python; empty: the newest PyTorch on the path
  kj::String python;                // that is used
  kj::String version;               // of its PyTorch; empty: there is none
  bool onGpu = false;
  bool json = false;
  bool failed = false;  // of any row anything
  uint rounds = 5;
  uint seconds = 8;
};

}  // namespace tools
