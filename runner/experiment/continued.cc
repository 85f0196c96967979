#include "runner/experiment/continued.h"

namespace runner {

Continued Continued::read(configs::Reader& reader) {
  constexpr int64_t MOST = 1ll << 52;
  Continued continued;
  continued.epoch = reader.integer(
      "epoch", "How many epochs had been trained.", {.atLeast = 1, .atMost = 1000000});
  continued.step = reader.integer("step",
      "How many steps each worker had made. Later steps are numbered from there.",
      {.atLeast = 1, .atMost = MOST});
  continued.records = reader.integer("records",
      "How many records of the stream all workers together had read. Training continues with the "
      "next record.",
      {.atLeast = 1, .atMost = MOST});
  continued.updates = reader.integer("updates",
      "How many updates the optimizer had made to each parameter, computed from the steps.",
      {.atLeast = 0, .atMost = MOST});
  return continued;
}

kj::String Continued::setting() const {
  return kj::str("continued={ epoch = ", epoch, ", step = ", step, ", records = ", records,
      ", updates = ", updates, " }");
}

}  // namespace runner
