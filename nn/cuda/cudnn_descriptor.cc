#include "nn/cuda/cudnn_descriptor.h"

#include <kj/debug.h>
#include <kj/vector.h>

namespace nn::cuda {

namespace {

void require(cudnnStatus_t status, kj::StringPtr what) {
  KJ_IF_MAYBE(reason, refusal(status, what)) KJ_FAIL_REQUIRE(*reason);
}

}  // namespace

kj::Maybe<kj::String> refusal(cudnnStatus_t status, kj::StringPtr what) {
  if (status == CUDNN_STATUS_SUCCESS) return nullptr;
  char reason[1024] = {};
  cudnnGetLastErrorString(reason, sizeof(reason));
  return kj::str("cuDNN cannot ", what, ": ", cudnnGetErrorString(status),
      reason[0] == '\0' ? "" : ": ", kj::StringPtr(reason));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  require(cudnnBackendCreateDescriptor(type, &descriptor),
      kj::str("make a descriptor of type ", int(type)));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  auto mine = descriptor;
  descriptor = other.descriptor;
  other.descriptor = mine;
  return *this;
}

Descriptor::~Descriptor() noexcept {
  if (descriptor != nullptr) cudnnBackendDestroyDescriptor(descriptor);
}

void Descriptor::set(cudnnBackendAttributeName_t attribute, kj::ArrayPtr<const Descriptor> values) {
  auto raw = KJ_MAP(value, values) {
    return value.descriptor;
  };
  setRaw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.begin());
}

void Descriptor::setRaw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
    int64_t count, const void* values) {
  require(cudnnBackendSetAttribute(descriptor, attribute, type, count, values),
      kj::str("set the attribute ", int(attribute)));
}

void Descriptor::finalize() {
  require(cudnnBackendFinalize(descriptor), "finalize a descriptor");
}

kj::Maybe<kj::String> Descriptor::tryToFinalize() {
  return refusal(cudnnBackendFinalize(descriptor), "make it");
}

int64_t Descriptor::count(
    cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type) const {
  int64_t count = 0;
  getRaw(attribute, type, 0, count, nullptr);
  return count;
}

void Descriptor::getRaw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
    int64_t room, int64_t& count, void* values) const {
  require(cudnnBackendGetAttribute(descriptor, attribute, type, room, &count, values),
      kj::str("read the attribute ", int(attribute)));
}

kj::Array<Descriptor> Descriptor::getAll(
    cudnnBackendAttributeName_t attribute, cudnnBackendDescriptorType_t type, size_t room) const {
  kj::Vector<Descriptor> all(room);
  for (size_t i = 0; i < room; ++i) all.add(type);
  auto raw = KJ_MAP(one, all) {
    return one.descriptor;
  };
  int64_t got = 0;
  getRaw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), got, raw.begin());
  all.truncate(got);
  return all.releaseAsArray();
}

}  // namespace nn::cuda
