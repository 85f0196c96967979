#include "nn/cuda/draft.h"

#include <kj/debug.h>

namespace nn::cuda {

namespace {

// The alignment that cudaMalloc guarantees, and that vector loads of libraries may need.
constexpr size_t ALIGNMENT_BYTES = 256;

}  // namespace

Draft::Draft(Draft&& first, byte* memory, Device& device)
    : images(first.images), tenants(kj::mv(first.tenants)), memory(memory), device(device) {}

size_t Draft::pack() {
  auto all = KJ_MAP(tenant, tenants) {
    return &tenant;
  };
  return nn::pack(all, ALIGNMENT_BYTES);
}

Room Draft::room(size_t bytes) {
  if (memory == nullptr) {
    tenants.add(Tenant{bytes});
  } else {
    KJ_ASSERT(rooms < tenants.size() && tenants[rooms].bytes == bytes,
        "both drafts take the same rooms", rooms, bytes);
  }
  return {rooms++};
}

Tensor Draft::tensor(Element element, uint channels, Plane plane, uint pack) {
  uint width = padded(channels, pack);
  size_t values = size_t(images) * plane.height * plane.width * width;
  return {room(values * bytesOf(element)), element, 0, plane, channels, width, width};
}

Tensor Draft::part(const Tensor& whole, uint first, uint channels) {
  KJ_REQUIRE(first + channels <= whole.channels);
  auto part = whole;
  part.shift += first;
  part.channels = channels;
  bool isLast = first + channels == whole.channels;
  part.width = isLast ? whole.width - first : channels;
  return part;
}

void* Draft::use(Room room) {
  auto& tenant = tenants[room.tenant];
  tenant.use(moment);
  return memory == nullptr ? nullptr : memory + tenant.offset;
}

View Draft::use(const Tensor& tensor) {
  auto start = static_cast<byte*>(use(tensor.room));
  // Null in the first draft.
  if (start != nullptr) start += tensor.shift * bytesOf(tensor.element);
  return {.data = start,
      .pixels = images * tensor.plane.height * tensor.plane.width,
      .channels = tensor.channels,
      .width = tensor.width,
      .stride = tensor.stride};
}

void Draft::run(Kernel kernel) {
  if (memory != nullptr) works->add(kj::mv(kernel));
  moment++;
}

void Draft::run(
    const ConvolutionProblem& shape, Direction direction, const void* a, const void* b, void* c) {
  KJ_IF_MAYBE(d, device) {
    auto convolution = d->plan(shape, direction);
    workspaceMax_bytes = kj::max(workspaceMax_bytes, convolution->workspace_bytes());
    works->add(ConvolutionWork{kj::mv(convolution), a, b, c});
  }
  moment++;
}

}  // namespace nn::cuda
