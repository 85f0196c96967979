// rpc/testing/test_state.h: keeps the state of objects in memory, and restores it.
#pragma once

#include <kj/debug.h>
#include <kj/map.h>

#include <cstring>

#include "configs/language/state_visitor.h"

namespace rpc {

// The arrays of one object, by name.
class TestState {
public:
  // Copies the visited arrays.
  class Save final: public configs::StateVisitor {
  public:
    explicit Save(TestState& state): state(state) {}
    bool restores() const override { return false; }
    void visit(
        kj::StringPtr name, Type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) override {
      kj::Vector<kj::byte> bytes;
      for (auto& piece: pieces) bytes.addAll(piece);
      // Throws if two arrays have this name.
      state.arrays.insert(kj::str(name), bytes.releaseAsArray());
    }

  private:
    TestState& state;
  };

  // Overwrites the visited arrays.
  class Restore final: public configs::StateVisitor {
  public:
    explicit Restore(const TestState& state): state(state) {}
    bool restores() const override { return true; }
    void visit(
        kj::StringPtr name, Type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) override {
      auto& bytes = KJ_REQUIRE_NONNULL(state.arrays.find(name), "no such array", name);
      size_t at = 0;
      for (auto piece: pieces) {
        KJ_REQUIRE(at + piece.size() <= bytes.size(), name);
        if (piece.size() > 0) memcpy(piece.begin(), bytes.begin() + at, piece.size());
        at += piece.size();
      }
      KJ_REQUIRE(at == bytes.size(), name);
    }

  private:
    const TestState& state;
  };

private:
  kj::HashMap<kj::String, kj::Array<kj::byte>> arrays;
};

}  // namespace rpc
