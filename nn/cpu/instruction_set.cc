#include "nn/cpu/instruction_set.h"

#include <stdlib.h>
#include <strings.h>

#include <dnnl.hpp>

#include "configs/language/failure.h"

namespace nn {

namespace {

constexpr kj::StringPtr AVX2 = "avx2"_kj;
constexpr kj::StringPtr AVX512 = "avx512"_kj;

[[noreturn]] void failWithoutAvx2() {
  configs::fail(
      "this processor has no AVX2, or DNNL_MAX_CPU_ISA forbids it. Use a processor of 2013 or "
      "later");
}

// Returns the limit that the user has set for oneDNN. Empty if the user has set no limit.
kj::StringPtr limitOfUser() {
  for (auto name: {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    auto value = ::getenv(name);
    if (value != nullptr) return value;
  }
  return ""_kj;
}

// Whether `limit` is one of `words`. oneDNN ignores words that it does not know.
bool isOneOf(kj::StringPtr limit, kj::ArrayPtr<const kj::StringPtr> words) {
  for (auto& word: words) {
    if (::strcasecmp(limit.cStr(), word.cStr()) == 0) return true;
  }
  return false;
}

}  // namespace

kj::StringPtr offeredInstructionSet() {
  // oneDNN cannot be asked: its answer fixes the level.
  constexpr kj::StringPtr BELOW_AVX2[] = {"SSE41"_kj, "AVX"_kj};
  constexpr kj::StringPtr BELOW_AVX512[] = {
      "AVX2"_kj, "AVX2_VNNI"_kj, "AVX512_MIC"_kj, "AVX512_MIC_4OPS"_kj};
  auto limit = limitOfUser();
  if (!__builtin_cpu_supports("avx2") || isOneOf(limit, BELOW_AVX2)) failWithoutAvx2();
  bool hasAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return hasAvx512 && !isOneOf(limit, BELOW_AVX512) ? AVX512 : AVX2;
}

kj::StringPtr instructionSet() {
  auto has = [](dnnl::cpu_isa level) {
    auto bits = unsigned(dnnl::get_effective_cpu_isa());
    return (bits & unsigned(level)) == unsigned(level);
  };
  if (has(dnnl::cpu_isa::avx512_core)) return AVX512;
  if (!has(dnnl::cpu_isa::avx2)) failWithoutAvx2();
  return AVX2;
}

void useInstructionSet(kj::StringPtr level) {
  // Has no effect if the level is fixed already.
  if (level == AVX2 && offeredInstructionSet() != AVX2) {
    (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  }
  auto used = instructionSet();
  if (used != level) {
    configs::fail("this process computes with ", used, ", and cannot compute with ", level);
  }
}

}  // namespace nn
