// nn/cpu/primitive.h: a oneDNN primitive that several lanes can run at once.
#pragma once

#include <kj/debug.h>
#include <kj/vector.h>

#include <dnnl.hpp>

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// One argument of a primitive: its number, and its layout.
struct Argument {
  int id;
  dnnl::memory::desc desc;
};

// A primitive with memory objects for each lane. So lanes can run it at once, and a run allocates
// only what oneDNN's own call allocates.
class Primitive {
public:
  // `desc` must have been made for one thread.
  Primitive(const dnnl::primitive_desc_base& desc, const dnnl::engine& engine, uint lanes,
      std::initializer_list<Argument> arguments);

  // `data` is in the order of the arguments.
  void run(const Step& step, uint lane, std::initializer_list<const void*> data);

private:
  static constexpr uint ARGUMENTS_MAX = 5;
  dnnl::primitive primitive;
  uint count;
  int ids[ARGUMENTS_MAX];
  kj::Array<dnnl::memory> memories;  // of lane 0, then of lane 1, …
};

// The versions of a primitive for each number of images that chunks have.
class Sizes {
public:
  Primitive& add(uint images, Primitive primitive) {
    entries.add(SizedPrimitive{images, kj::mv(primitive)});
    return entries.back().primitive;
  }
  Primitive& of(uint images) {
    for (auto& entry: entries) {
      if (entry.images == images) return entry.primitive;
    }
    KJ_FAIL_ASSERT("no primitive was made for a chunk of this size", images);
  }

private:
  struct SizedPrimitive {
    uint images;
    Primitive primitive;
  };
  kj::Vector<SizedPrimitive> entries;
};

}  // namespace nn::cpu
