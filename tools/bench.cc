// tools/bench.cc: measures; each bench is a sub-command that first checks its result.
#include "tools/bench_losses.h"
#include "tools/bench_peers.h"
#include "tools/bench_train.h"

namespace tools {
namespace {

class Bench {
public:
  explicit Bench(runner::CommandLine& commandLine)
      : commandLine(commandLine), train(commandLine), losses(commandLine), peers(commandLine) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(commandLine, "bench",
        "Measures parts of the program. Compare figures only within one run: machines are shared.")
        .addSubCommand("train", KJ_BIND_METHOD(train, getMain), "steps of one worker, timed")
        .addSubCommand(
            "losses", KJ_BIND_METHOD(losses, getMain), "losses of the first steps, for comparisons")
        .addSubCommand("peers", KJ_BIND_METHOD(peers, getMain), "ours and PyTorch, in alternation")
        .build();
  }

private:
  runner::CommandLine& commandLine;
  BenchTrain train;
  BenchLosses losses;
  BenchPeers peers;
};

}  // namespace
}  // namespace tools

int main(int argc, char* argv[]) {
  runner::setThreadEnvironment(argv);
  runner::CommandLine commandLine("bench");
  tools::Bench bench(commandLine);
  commandLine.run(bench.getMain(), argc, argv);
}
