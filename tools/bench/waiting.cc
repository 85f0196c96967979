#include "tools/bench/waiting.h"

#include <sys/prctl.h>
#include <time.h>

#include "configs/language/random.h"
#include "nn/loops/floats.h"
#include "tools/bench/roles.h"

namespace tools {

WaitingProgram::WaitingProgram(const nn::Graph& graph, uint seed, kj::ArrayPtr<float> gradients)
    : values(nn::zeros(graph.parameters)),
      pushed(gradients),
      shares(kj::heapArray<NodeFlops>(graph.segments.size())) {
  if (pushed.size() == 0) pushed = own = nn::zeros(graph.parameters);
  configs::Random random(1 + seed, configs::Purpose::INITIAL_VALUES);
  for (auto& gradient: pushed) gradient = random.normal();

  auto flops = flopsOf(graph);
  double all = 0;
  for (uint s: kj::indices(shares)) {
    auto nodes = graph.segments[s].nodes;
    for (auto& node: flops.slice(nodes.begin, nodes.end)) {
      shares[s].forward += node.forward;
      shares[s].backward += node.backward;
    }
    all += shares[s].forward + shares[s].backward;
  }
  for (auto& share: shares) share = {share.forward / all, share.backward / all};
  // A wait ends on time, not up to 50 µs later.
  ::prctl(PR_SET_TIMERSLACK, 1);
}

void WaitingProgram::wait(double share) {
  auto length_ns = uint64_t(share * double(step_ns));
  uint64_t before_ns = kj::min(late_ns, length_ns);
  late_ns -= before_ns;
  if (before_ns == length_ns) return;
  uint64_t end_ns = now_ns() + length_ns - before_ns;
  timespec end{time_t(end_ns / 1'000'000'000), long(end_ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) != 0) {
  }
  late_ns += now_ns() - end_ns;
}

}  // namespace tools
