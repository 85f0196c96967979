#include "tools/bench/gpu_peers.h"

#include <kj/debug.h>

#include "tools/bench/process.h"

namespace tools {
namespace {

constexpr GpuNetwork NETWORKS[] = {
    {"mlp", "configs/mnist_mlp_local.toml", "mlp", 100, 1},
    {"lenet", "tests/peers/lenet.toml", "lenet", 128, 1},
    {"inception-small", "configs/cifar10_local.toml", "inception-bn-28-small", 128},
    {"inception-small-512", "configs/cifar10_local.toml", "inception-bn-28-small", 512},
    {"resnet-20", "configs/cifar10_resnet20.toml", "resnet-20", 128},
    {"resnet-56", "configs/cifar10_resnet56.toml", "resnet-56", 128},
    {"airbench94", "tests/peers/airbench94.toml", "airbench94", 1024, 3, 32},
    {"inception-224", "configs/imagenet_inception_bn.toml", "inception-bn", 64, 3, 224, 1000},
};

// A way in which PyTorch runs a network, and the precision of ours beside it. Of several modes, the
// faster one counts.
struct Way {
  const char* name;
  const char* precision;
  bool isPlain;
  kj::ArrayPtr<const kj::StringPtr> modes;  // of torch.compile()
};

constexpr kj::StringPtr NOT_COMPILED[] = {""_kj};
constexpr kj::StringPtr MODES[] = {"reduce-overhead"_kj, "max-autotune-no-cudagraphs"_kj};
const Way WAYS[] = {
    {"plain", "tf32", true, NOT_COMPILED},
    {"autocast", "bf16", false, NOT_COMPILED},
    {"compiled", "bf16", false, MODES},
};

// For loading PyTorch and compiling. A mode that takes longer has no figure.
constexpr uint FIRST_ANSWER_S = 170;
constexpr uint LATER_ANSWER_S = 60;

// A PyTorch process that compiles once, and then measures whenever it is asked.
class AskedPeer {
public:
  AskedPeer(const GpuNetwork& network, const Way& way, kj::StringPtr python, uint seconds)
      : network(network), way(way), python(python), seconds(seconds) {}

  Figure measure() {
    if (program.get() == nullptr) return chooseMode();
    return figure(*program, LATER_ANSWER_S);
  }

private:
  const GpuNetwork& network;
  const Way& way;
  kj::StringPtr python;
  uint seconds;
  kj::Own<AskedProgram> program;  // of the fastest mode
  kj::StringPtr mode;

  kj::Own<AskedProgram> start(kj::StringPtr candidate) {
    kj::Vector<kj::String> words;
    for (auto word:
        {python, PEER_SCRIPT, kj::StringPtr(network.network), "--asked"_kj, "--device=cuda"_kj}) {
      words.add(kj::str(word));
    }
    words.add(kj::str("--batch=", network.batch));
    words.add(kj::str("--seconds=", seconds));
    words.add(kj::str("--precision=", way.precision));
    if (way.isPlain) words.add(kj::str("--plain"));
    if (candidate.size() > 0) words.add(kj::str("--compile=", candidate));
    return kj::heap<AskedProgram>(words);
  }

  Figure figure(AskedProgram& asked, uint limit_s) {
    auto figure = figureOf(asked.ask(limit_s), "images_per_s");
    figure.how = kj::str(mode);
    return figure;
  }

  // Runs one program at a time, because they share the GPU and its memory.
  Figure chooseMode() {
    Figure best = {nullptr, kj::str("no mode")};
    kj::Vector<kj::String> reasons;
    for (auto candidate: way.modes) {
      auto started = start(candidate);
      auto found = figure(*started, FIRST_ANSWER_S);
      KJ_IF_MAYBE(value, found.value) {
        if (*value <= best.value.orDefault(0)) continue;
        best = kj::mv(found);
        program = kj::mv(started);
        mode = candidate;
      } else {
        reasons.add(kj::str(candidate, candidate == "" ? "" : ": ", found.reason));
      }
    }
    if (best.value == nullptr) best.reason = kj::strArray(reasons, "; ");
    best.how = kj::str(mode);
    return best;
  }
};

Figure oursOf(const GpuNetwork& network, const Way& way, uint seconds) {
  return figureOf(
      runProgram(kj::arr(kj::str("/proc/self/exe"), kj::str("train"), kj::str(network.file),
          kj::str("--json"), kj::str("--no-check"), kj::str("--seconds=", seconds),
          kj::str("--classes=", network.classes), kj::str("--colours=", network.colours),
          kj::str("--set=data.augment.crop=", network.side),
          kj::str("--set=data.batch_size=", network.batch),
          kj::str("--set=cluster.devices=[\"cuda\"]"),
          kj::str("--set=train.precision=", way.precision))),
      "images_per_s");
}

}  // namespace

constinit const kj::ArrayPtr<const GpuNetwork> GPU_NETWORKS = NETWORKS;

kj::Vector<kj::Own<Contest>> gpuContests(kj::StringPtr word, kj::StringPtr python, uint seconds) {
  kj::Vector<kj::Own<Contest>> contests;
  for (auto& network: NETWORKS) {
    for (auto& way: WAYS) {
      auto name = kj::str(network.name, '-', way.name);
      if (word != network.name && word != name) continue;
      auto contest = kj::heap<Contest>();
      contest->name = kj::mv(name);
      contest->unit = "images/s"_kj;
      contest->check = []() -> kj::Maybe<kj::String> { return nullptr; };
      contest->ours = [&network, &way, seconds]() { return oursOf(network, way, seconds); };
      auto peer = kj::heap<AskedPeer>(network, way, python, seconds);
      contest->theirs = [peer = kj::mv(peer)]() mutable { return peer->measure(); };
      contests.add(kj::mv(contest));
    }
  }
  return contests;
}

kj::Maybe<kj::String> noGpuPeer(kj::StringPtr python) {
  auto ended = runPeerScript(python, {"--import-only"_kj, "--json"_kj, "--device=cuda"_kj});
  if (ended.exitCode == 0) return nullptr;
  return ended.reason();
}

}  // namespace tools
