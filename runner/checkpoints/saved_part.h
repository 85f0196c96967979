// runner/checkpoints/saved_part.h: the state that one role, or one shard, keeps from step to step,
// as a file.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "configs/language/state_visitor.h"
#include "runner/checkpoints/safetensors.h"

namespace runner {

// Fills `target` with the bytes that begin at `offset` in the concatenation of `pieces`. There must
// be enough of them.
void copyPieces(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces, uint64_t offset,
    kj::ArrayPtr<kj::byte> target);

// A file in memory, in the format of safetensors.h, of which each array is a tensor.
struct SavedPart {
  kj::Array<kj::byte> head;
  kj::Array<kj::byte> values;

  uint64_t size() const { return head.size() + values.size(); }
  // See copyPieces().
  void copy(uint64_t offset, kj::ArrayPtr<kj::byte> target) const;
};

// Copies the arrays that it visits into one part.
class PartSaver final: public configs::StateVisitor {
public:
  // Reserves room for `expected_bytes` bytes of values, for example the size of the previous part.
  explicit PartSaver(uint64_t expected_bytes) { values.reserve(expected_bytes); }

  bool restores() const override { return false; }
  void visit(
      kj::StringPtr name, Type type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) override;
  // Returns the part, with `notes` in its header. Call once.
  SavedPart finish(kj::ArrayPtr<const Note> notes = nullptr);

private:
  kj::Vector<Tensor> tensors;
  kj::Vector<kj::byte> values;
};

// Overwrites the arrays that it visits with those of a part. Throws if the part has no array of
// that name, type and size, or was damaged.
class PartLoader final: public configs::StateVisitor {
public:
  // `bytes` must outlive it.
  explicit PartLoader(kj::ArrayPtr<const kj::byte> bytes);

  bool restores() const override { return true; }
  void visit(
      kj::StringPtr name, Type type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) override;
  // Whether the part has an array of this name that has not been visited yet.
  bool has(kj::StringPtr name) const { return tensors.find(name) != nullptr; }
  // Throws if the part has arrays that were not visited. Call it last.
  void finish() const;

private:
  kj::HashMap<kj::String, FoundTensor> tensors;  // those that have not been visited yet
};

}  // namespace runner
