#include "rpc/codec/loops.h"

namespace rpc::codec {

size_t loopsHere() {
  if (!__builtin_cpu_supports("avx2")) return 1;
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? 3 : 2;
}

const Loops& loops() {
  static const Loops& fastest = *ALL_LOOPS[loopsHere() - 1];
  return fastest;
}

}  // namespace rpc::codec
