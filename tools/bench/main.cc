// tools/bench/main.cc: the benches. Each one is a sub-command, and first checks its result.
#include "tools/bench/codec.h"
#include "tools/bench/kv_roles.h"
#include "tools/bench/kvstore.h"
#include "tools/bench/losses.h"
#include "tools/bench/network.h"
#include "tools/bench/network_roles.h"
#include "tools/bench/peers.h"
#include "tools/bench/train.h"

namespace tools {
namespace {

class Bench {
public:
  explicit Bench(runner::CommandLine& commandLine)
      : commandLine(commandLine),
        train(commandLine),
        losses(commandLine),
        peers(commandLine),
        kvStore(commandLine),
        network(commandLine),
        codec(commandLine) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(commandLine, "bench",
        "Measures parts of the program. Compare figures only within one run: machines are shared.")
        .addSubCommand("train", KJ_BIND_METHOD(train, getMain), "time training steps of one worker")
        .addSubCommand("losses", KJ_BIND_METHOD(losses, getMain),
            "print the losses of the first steps, to compare with others")
        .addSubCommand("peers", KJ_BIND_METHOD(peers, getMain),
            "compare training with PyTorch, in alternation")
        .addSubCommand("kvstore", KJ_BIND_METHOD(kvStore, getMain),
            "time push and pull, and compare with what the machine can do")
        .addSubCommand("network", KJ_BIND_METHOD(network, getMain),
            "time training steps on hosts behind slow links")
        .addSubCommand("codec", KJ_BIND_METHOD(codec, getMain),
            "time encoding and decoding of gradients, per value")
        .build();
  }

private:
  runner::CommandLine& commandLine;
  BenchTrain train;
  BenchLosses losses;
  BenchPeers peers;
  BenchKvStore kvStore;
  BenchNetwork network;
  BenchCodec codec;
};

}  // namespace
}  // namespace tools

int main(int argc, char* argv[]) {
  runner::setThreadEnvironment(argv);
  runner::CommandLine commandLine("bench");
  // For a process that `bench kvstore` or `bench network` starts.
  auto runRole = [&](kj::StringPtr word, void (*role)(kj::ArrayPtr<const kj::StringPtr>)) {
    if (argc < 2 || argv[1] != word) return;
    commandLine.run(
        [role](kj::StringPtr, kj::ArrayPtr<const kj::StringPtr> words) {
          role(words.slice(1, words.size()));
        },
        argc, argv);
  };
  runRole(tools::KV_ROLE, tools::runKvRole);
  runRole(tools::NETWORK_ROLE, tools::runNetworkRole);
  tools::Bench bench(commandLine);
  commandLine.run(bench.getMain(), argc, argv);
}
