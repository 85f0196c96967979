// nn/cpu/primitive.h: a oneDNN primitive that several lanes can run at the same time.
#pragma once

#include <kj/debug.h>
#include <kj/vector.h>

#include <dnnl.hpp>

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// One of a primitive's arguments: which, and its layout.
struct Argument {
  int id;
  dnnl::memory::desc desc;
};

// A primitive with memory objects for each lane, so that lanes run it at the same time and a run
// allocates nothing but what oneDNN's own call does.
class Primitive {
public:
  // `desc` was made for one thread.
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

// The same primitive for each number of images that chunks have.
class Sizes {
public:
  Primitive& add(uint images, Primitive primitive) {
    entries.add(Entry{images, kj::mv(primitive)});
    return entries.back().primitive;
  }
  Primitive& of(uint images) {
    for (auto& entry: entries) {
      if (entry.images == images) return entry.primitive;
    }
    KJ_FAIL_ASSERT("no primitive was made for a chunk of this size", images);
  }

private:
  struct Entry {
    uint images;
    Primitive primitive;
  };
  kj::Vector<Entry> entries;
};

}  // namespace nn::cpu
