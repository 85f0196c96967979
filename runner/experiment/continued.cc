#include "runner/experiment/continued.h"

namespace runner {

Continued Continued::read(configs::Reader& reader) {
  constexpr int64_t MOST = 1ll << 52;
  Continued continued;
  continued.epoch = reader.integer(
      "epoch", "How many epochs were trained before.", {.atLeast = 1, .atMost = 1000000});
  continued.step = reader.integer("step",
      "How many steps each worker had made. The steps that follow count on from there.",
      {.atLeast = 1, .atMost = MOST});
  continued.records = reader.integer("records",
      "How many records all workers together had read. The others follow.",
      {.atLeast = 1, .atMost = MOST});
  continued.updates =
      reader.integer("updates", "How many updates each parameter had had, by the number of steps.",
          {.atLeast = 0, .atMost = MOST});
  return continued;
}

kj::String Continued::setting() const {
  return kj::str("continued={ epoch = ", epoch, ", step = ", step, ", records = ", records,
      ", updates = ", updates, " }");
}

}  // namespace runner
