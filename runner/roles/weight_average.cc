#include "runner/roles/weight_average.h"

#include "nn/loops/floats.h"

namespace runner {

namespace {

void average(float kept, kj::ArrayPtr<const float> from, kj::ArrayPtr<float> to) {
  float added = 1 - kept;
  const float* w = from.begin();
  float* a = to.begin();
  for (size_t i = 0, count = to.size(); i < count; i++) a[i] = kept * a[i] + added * w[i];
}

}  // namespace

WeightAverage::WeightAverage(double decay, const nn::Graph& graph)
    : decay(decay), averages(nn::zeros(graph.parameters + graph.statisticsSize)) {}

void WeightAverage::take(
    uint64_t step, kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics) {
  KJ_REQUIRE(parameters.size() + statistics.size() == averages.size());
  if (step <= last) return;
  double n = double(taken);
  float kept = taken == 0 ? 0 : float(kj::min(decay, (1 + n) / (10 + n)));
  average(kept, parameters, averages.slice(0, parameters.size()));
  average(kept, statistics, averages.slice(parameters.size(), averages.size()));
  taken++;
  last = step;
}

void WeightAverage::visitState(configs::StateVisitor& visitor) {
  visitor.floats("average.values", averages);
  visitor.count("average.taken", taken);
  visitor.count("average.step", last);
}

}  // namespace runner
