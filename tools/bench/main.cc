// tools/bench/main.cc: the program `bench`.
#include "tools/bench/benches.h"
#include "tools/bench/network_roles.h"

namespace tools {
namespace {

struct Bench {
  kj::StringPtr name;
  kj::MainFunc (*main)(runner::CommandLine&);
  kj::StringPtr doc;
};

constexpr Bench BENCHES[] = {
    {"train"_kj, benchTrain, "time training steps of one worker"_kj},
    {"losses"_kj, benchLosses, "print the losses of the first steps, to compare with others"_kj},
    {"peers"_kj, benchPeers, "compare training with PyTorch, in alternation"_kj},
    {"reader"_kj, benchReader, "time how fast records become batches, and compare with others"_kj},
    {"kvstore"_kj, benchKvStore, "time push and pull, and compare with what the machine can do"_kj},
    {"network"_kj, benchNetwork, "time training steps on hosts behind slow links"_kj},
    {"codec"_kj, benchCodec, "time encoding and decoding of gradients, per value"_kj},
};

}  // namespace
}  // namespace tools

int main(int argc, char* argv[]) {
  runner::setThreadEnvironment(argv);
  runner::CommandLine commandLine("bench");
  if (argc > 1 && argv[1] == tools::NETWORK_ROLE) {
    commandLine.run(
        [](kj::StringPtr, kj::ArrayPtr<const kj::StringPtr> words) {
          tools::runNetworkRole(words.slice(1, words.size()));
        },
        argc, argv);
  }
  kj::MainBuilder builder(commandLine, "bench",
      "Measures parts of the program. Compare figures only within one run: machines are shared.");
  for (auto& bench: tools::BENCHES) {
    builder.addSubCommand(
        bench.name, [&]() { return bench.main(commandLine); }, bench.doc);
  }
  commandLine.run(builder.build(), argc, argv);
}
