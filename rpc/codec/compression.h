// rpc/codec/compression.h: the interface of compressions. The rest of the program calls these
// functions, and never asks which compression is in use.
#pragma once

#include <kj/memory.h>
#include <kj/refcount.h>
#include <kj/string.h>

#include "configs/language/state_visitor.h"
#include "rpc/codec/encoding.h"

namespace rpc::codec {

// A worker's side of compression: it sends a part of the gradients, and keeps the rest for later
// pushes. Initially it keeps zeros. For one thread.
class Compressor {
public:
  virtual ~Compressor() noexcept(false) = default;

  // Writes to `payload` the push of `step` (from 0) for the slice that begins at `offset` of the
  // flat array. It combines this gradient with the kept rest of earlier ones. Call it once per
  // step. Throws FAILED if the gradient is not finite and the payload would hide that.
  virtual void encode(uint64_t offset, uint64_t step, Floats gradient, Buffer& payload) = 0;

  // Returns the kept values of all slices, in the order of the flat array. Empty if this
  // compression keeps nothing.
  Floats unsent() const { return kept; }
  // Visits the kept values, to save and to restore them.
  virtual void visitState(configs::StateVisitor& visitor) { visitor.floats("store.unsent", kept); }

protected:
  // Keeps one number per value.
  explicit Compressor(uint64_t values): kept(zeros(values)) {}

  static kj::Array<float> zeros(uint64_t size);
  // Throws the exception of encode() for gradients that are not finite. The values would be kept
  // forever, and their parameters would never change again.
  [[noreturn]] static void failNotFinite();

  kj::Array<float> kept;
};

// A compression of the gradients that workers push: a row of the table, with the keys of an
// experiment filled in. This base class is the row `none`, which sends all values. Immutable; any
// thread.
class Compression: public kj::AtomicRefcounted {
public:
  // Returns the encoding of pushes, if single numbers are sent as `wire`.
  virtual Encoding pushes(Number wire) const { return {.numbers = wire}; }
  // Returns the encoding of sums of at most `pushes` pushes. It is exact, except for halves.
  virtual Encoding sums(Number wire, uint pushes) const { return {.numbers = wire}; }
  // Returns the share of values that a push holds, after any warm-up.
  virtual double sentShare() const { return 1; }
  // Returns the text that must be the same at both ends, for messages. Empty for `none`.
  virtual kj::String words() const { return kj::String(); }

  // Makes the compressor of one of `workers` workers, for a flat array of `values` values. This
  // object must outlive it.
  virtual kj::Own<Compressor> newCompressor(Number wire, uint64_t values, uint workers) const;
};

}  // namespace rpc::codec
