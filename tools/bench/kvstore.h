// tools/bench/kvstore.h: `bench kvstore`: measures push and pull beside limits of the machine.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/system/command_line.h"
#include "tools/bench/kv_peers.h"
#include "tools/bench/kv_rows.h"

namespace tools {

class BenchKvStore {
public:
  explicit BenchKvStore(runner::CommandLine& commandLine);

  // Returns the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity setBytes(kj::StringPtr words);
  kj::MainBuilder::Validity setWires(kj::StringPtr words);
  kj::MainBuilder::Validity setCores(kj::StringPtr words);
  kj::MainBuilder::Validity setSeconds(kj::StringPtr word);
  kj::MainBuilder::Validity run();
  KvRows measure(const KvCase& kvCase);

  runner::CommandLine& commandLine;
  kj::Vector<uint64_t> sizes;  // empty: SIZES
  kj::Vector<Wire> wires;      // empty: all that the store has
  KvCores cores;
  kj::Vector<kj::Own<KvPeer>> peers;
  uint keys = 1;
  uint workers = 1;
  uint servers = 1;
  uint rounds = 5;
  uint slice_bytes = 1 << 20;  // the default of kvstore.slice_bytes
  double seconds = 0.5;
  bool sgd = true;
  bool hasPeers = true;
  kj::StringPtr python;  // of --python; empty: the newest PyTorch on the path
  bool json = false;
};

}  // namespace tools
