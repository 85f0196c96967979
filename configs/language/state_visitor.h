// configs/language/state_visitor.h: visits the state that an object keeps from step to step, so
// that it can be saved and restored.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include <cstdint>

namespace configs {

// Visits the arrays of an object's state, one after another. The visitor of a save copies them, and
// the visitor of a restore overwrites them. An object has one function for both, visitState(), so
// that the two always agree on names, sizes and order.
class StateVisitor {
public:
  enum class Type : uint8_t { FLOAT32, FLOAT64, UINT64 };

  virtual ~StateVisitor() noexcept(false) = default;

  // Whether it overwrites the visited arrays.
  virtual bool restores() const = 0;

  // Visits an array whose values are the concatenation of `pieces`. `name` must be unique among all
  // arrays that are saved together. The pieces need not stay valid after the call. A restore throws
  // if it has no array of this name, type and size.
  virtual void visit(
      kj::StringPtr name, Type type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) = 0;

  void floats(kj::StringPtr name, kj::ArrayPtr<float> values) {
    whole(name, Type::FLOAT32, values.asBytes());
  }
  void floats(kj::StringPtr name, kj::ArrayPtr<const kj::ArrayPtr<float>> pieces) {
    kj::Vector<kj::ArrayPtr<kj::byte>> bytes(pieces.size());
    for (auto& piece: pieces) bytes.add(kj::ArrayPtr<float>(piece).asBytes());
    visit(name, Type::FLOAT32, bytes);
  }
  void counts(kj::StringPtr name, kj::ArrayPtr<uint64_t> values) {
    whole(name, Type::UINT64, values.asBytes());
  }
  // Visits one whole number or boolean.
  template <typename T>
  void count(kj::StringPtr name, T& value) {
    uint64_t wide = value;
    counts(name, kj::arrayPtr(&wide, 1));
    value = T(wide);
  }
  void number(kj::StringPtr name, double& value) {
    whole(name, Type::FLOAT64, kj::arrayPtr(&value, 1).asBytes());
  }

private:
  void whole(kj::StringPtr name, Type type, kj::ArrayPtr<kj::byte> bytes) {
    visit(name, type, kj::arrayPtr(&bytes, 1));
  }
};

// Sets all visited arrays to zero, as in a newly made object.
class StateEraser final: public StateVisitor {
public:
  bool restores() const override { return true; }
  void visit(kj::StringPtr, Type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) override {
    for (auto piece: pieces) {
      for (auto& each: piece) each = 0;
    }
  }
};

}  // namespace configs
