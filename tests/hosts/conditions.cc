#include "tests/hosts/conditions.h"

namespace tests {

namespace {

constexpr kj::StringPtr TLS[] = {"cluster.tls=true"_kj};
constexpr kj::StringPtr AVX2[] = {"cluster.instruction_set=avx2"_kj};
// See tests/faults/instruction_set_test.
constexpr kj::StringPtr ONLY_AVX2[] = {"DNNL_MAX_CPU_ISA=AVX2"_kj};

kj::Array<kj::StringPtr> joined(
    kj::ArrayPtr<const kj::StringPtr> settings, kj::ArrayPtr<const kj::StringPtr> more) {
  kj::Vector<kj::StringPtr> all;
  all.addAll(settings);
  all.addAll(more);
  return all.releaseAsArray();
}

}  // namespace

kj::Array<Condition> conditionsOf(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings) {
  auto alone = train(file, settings).weightsSha256;
  kj::Vector<Condition> all;
  auto add = [&](kj::StringPtr name, kj::ArrayPtr<const kj::StringPtr> more,
                 kj::ArrayPtr<const kj::StringPtr> variables, kj::StringPtr sha256) {
    all.add(Condition{name, joined(settings, more), variables, kj::str(sha256)});
  };
  add("equal hosts", nullptr, nullptr, alone);
  add("TLS", TLS, nullptr, alone);
  add("a host with AVX2 only", nullptr, ONLY_AVX2,
      train(file, joined(settings, AVX2)).weightsSha256);
  return all.releaseAsArray();
}

}  // namespace tests
