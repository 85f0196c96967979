#include "nn/cpu/instruction_set.h"

#include <cpuid.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <dnnl.hpp>

#include "configs/language/failure.h"

namespace nn {

namespace {

// Which of "avx512" and "avx512_amx" is fixed for this process. oneDNN fixes whether there is
// AVX-512 at all.
enum class Fixed { NOTHING, AVX512, AMX };
std::atomic<Fixed> fixed = Fixed::NOTHING;

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

constexpr kj::StringPtr BELOW_AVX2[] = {"SSE41"_kj, "AVX"_kj};
constexpr kj::StringPtr BELOW_AVX512[] = {
    "AVX2"_kj, "AVX2_VNNI"_kj, "AVX512_MIC"_kj, "AVX512_MIC_4OPS"_kj};
constexpr kj::StringPtr BELOW_AMX[] = {
    "AVX512_CORE"_kj, "AVX512_CORE_VNNI"_kj, "AVX512_CORE_BF16"_kj};

bool has(dnnl::cpu_isa level) {
  auto bits = unsigned(dnnl::get_effective_cpu_isa());
  return (bits & unsigned(level)) == unsigned(level);
}

uint rankOf(kj::StringPtr level) {
  return level == AMX ? 2 : level == AVX512 ? 1 : 0;
}

// Whether the processor has AMX, and the kernel lets this process use it. A process has to ask
// once. Then all its threads may use it.
bool findAmx() {
  uint eax, ebx, ecx, edx;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr uint AMX_BF16 = 1u << 22, AMX_TILE = 1u << 24;
  if ((edx & AMX_BF16) == 0 || (edx & AMX_TILE) == 0) return false;
  if (!__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) return false;
  constexpr uint AVX512_BF16 = 1u << 5;
  if ((eax & AVX512_BF16) == 0) return false;
  constexpr int ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18;
  return ::syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

}  // namespace

bool hasAmx() {
  static const bool found = findAmx();
  auto limit = limitOfUser();
  return found && !isOneOf(limit, BELOW_AVX2) && !isOneOf(limit, BELOW_AVX512) &&
         !isOneOf(limit, BELOW_AMX);
}

kj::StringPtr offeredInstructionSet() {
  // Does not ask oneDNN, because its answer would fix the level.
  auto limit = limitOfUser();
  if (!__builtin_cpu_supports("avx2") || isOneOf(limit, BELOW_AVX2)) failWithoutAvx2();
  bool hasAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!hasAvx512 || isOneOf(limit, BELOW_AVX512)) return AVX2;
  return hasAmx() ? AMX : AVX512;
}

kj::StringPtr instructionSet() {
  if (has(dnnl::cpu_isa::avx512_core)) {
    auto nothing = Fixed::NOTHING;
    fixed.compare_exchange_strong(nothing, hasAmx() ? Fixed::AMX : Fixed::AVX512);
    return fixed == Fixed::AMX ? AMX : AVX512;
  }
  if (!has(dnnl::cpu_isa::avx2)) failWithoutAvx2();
  return AVX2;
}

void useInstructionSet(kj::StringPtr level) {
  // Has no effect if the level is fixed already.
  if (level == AVX2 && offeredInstructionSet() != AVX2) {
    (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  }
  auto nothing = Fixed::NOTHING;
  if (level != AVX2) {
    fixed.compare_exchange_strong(nothing, level == AMX ? Fixed::AMX : Fixed::AVX512);
  }
  auto used = instructionSet();
  if (used != level) {
    configs::fail("this process computes with ", used, ", and cannot compute with ", level);
  }
}

bool canCompute(kj::StringPtr offered, kj::StringPtr level) {
  return rankOf(offered) >= std::min(rankOf(level), rankOf(AVX512));
}

kj::StringPtr lowerLevel(kj::StringPtr a, kj::StringPtr b) {
  return rankOf(a) < rankOf(b) ? a : b;
}

}  // namespace nn
