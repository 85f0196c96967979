#include "nn/cpu/primitive.h"

namespace nn::cpu {

Primitive::Primitive(const dnnl::primitive_desc_base& desc, const dnnl::engine& engine, uint lanes,
    std::initializer_list<Argument> arguments)
    : primitive(desc.get()), count(arguments.size()) {
  KJ_REQUIRE(count <= ARGUMENTS_MAX);
  kj::Vector<dnnl::memory> objects;
  for (uint lane = 0; lane < lanes; ++lane) {
    uint i = 0;
    for (auto& argument: arguments) {
      ids[i++] = argument.id;
      objects.add(dnnl::memory(argument.desc, engine, DNNL_MEMORY_NONE));
    }
  }
  memories = objects.releaseAsArray();
}

void Primitive::run(const Step& step, uint lane, std::initializer_list<const void*> data) {
  dnnl_exec_arg_t arguments[ARGUMENTS_MAX];
  uint i = 0;
  for (auto* pointer: data) {
    auto memory = memories[lane * count + i].get();
    auto status = dnnl_memory_set_data_handle(memory, const_cast<void*>(pointer));
    KJ_ASSERT(status == dnnl_success, "oneDNN refused an array", int(status));
    arguments[i] = {ids[i], memory};
    ++i;
  }
  KJ_ASSERT(i == count);
  auto status = dnnl_primitive_execute(primitive.get(), step.streams[lane], count, arguments);
  KJ_ASSERT(status == dnnl_success, "a oneDNN primitive failed", int(status));
}

}  // namespace nn::cpu
