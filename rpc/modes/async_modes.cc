#include "rpc/modes/async_modes.h"

#include "configs/language/reader.h"
#include "rpc/modes/delay_compensation.h"

namespace rpc {

namespace {

CompensationConfig readCompensation(configs::Reader& reader) {
  CompensationConfig config;
  config.adaptive = reader.flag("adaptive",
      "Divides `lambda` by the square root of a moving mean of each gradient's square (the paper's "
      "DC-ASGD-a). If false, `lambda` is constant (DC-ASGD-c).",
      false);
  config.lambda = reader.real("lambda",
      "How strongly a gradient is corrected. Default: 0.04, or 2 with `adaptive`. The paper uses "
      "these values for CIFAR-10.",
      {.atLeast = 0}, config.adaptive ? 2 : 0.04);
  return config;
}

class AsyncMode final: public Mode {
public:
  AsyncMode(const ModeRow& row, configs::Reader& reader): Mode(row) {
    if (reader.isManual() || row.has("staleness")) {
      staleness = uint64_t(reader.integer("staleness",
          "For `dist_ssp`: how many steps a worker may be ahead of the slowest one. No worker "
          "waits for one that has finished its epoch.",
          {.atLeast = 0, .atMost = 1 << 20}, 3));
    }
    passesStaleness = reader.flag("staleness_aware",
        "For `dist_async`, `dist_ssp` and `dc_asgd`: divides the learning rate by the staleness of "
        "the gradient, if the staleness is 2 or more. The staleness is the number of updates since "
        "the worker fetched the parameters with which it computed the gradient (Zhang et al. 2016, "
        "arXiv 1511.05950). Has no effect in `dist_ssp` with `staleness = 0`.",
        false);
    if (reader.isManual() || row.has("compensation")) {
      compensation = reader.section("compensation",
          "For `dc_asgd`: how a gradient is corrected (Zheng et al. 2017, arXiv 1609.08326).",
          readCompensation);
    }
  }

  Rounds rounds(uint workers) const override {
    Rounds rounds{.mode = row.name, .workers = workers};
    KJ_IF_MAYBE(bound, staleness) {
      // With a staleness of 0, no worker may be ahead of another, as in dist_sync.
      if (*bound == 0) {
        rounds.aggregate = workers;
        return rounds;
      }
      rounds.staleness = *bound;
    }
    rounds.counted = Rounds::EACH;
    rounds.keepsSeen = compensation != nullptr;
    rounds.passesStaleness = passesStaleness;
    return rounds;
  }

  kj::Own<Updater> newShardUpdater(
      kj::Own<Updater> optimizer, uint64_t imagesPerPush, uint) const override {
    KJ_IF_MAYBE(config, compensation) {
      return kj::heap<DelayCompensation>(kj::mv(optimizer), *config, imagesPerPush);
    }
    return optimizer;
  }

private:
  kj::Maybe<uint64_t> staleness;
  bool passesStaleness;
  kj::Maybe<CompensationConfig> compensation;
};

}  // namespace

kj::Own<const Mode> readAsyncMode(const ModeRow& row, configs::Reader& reader) {
  return kj::heap<AsyncMode>(row, reader);
}

}  // namespace rpc
