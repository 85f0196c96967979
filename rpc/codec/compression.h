// rpc/codec/compression.h: what a compression decides. The rest of the program asks it, and never
// which one it is.
#pragma once

#include <kj/memory.h>
#include <kj/refcount.h>
#include <kj/string.h>

#include "rpc/codec/encoding.h"

namespace rpc::codec {

// A worker's side of compression: what it sends of its gradients, and what it still keeps. What is
// kept is zero at first, and gone with the worker. For one thread.
class Compressor {
public:
  virtual ~Compressor() noexcept(false) = default;

  // Writes to `payload` what is pushed of a slice that begins at `offset` of the flat array: the
  // gradient of this step, from 0, and what was kept of earlier ones. Once for each step. Throws
  // FAILED if the gradient is not finite and nobody would notice otherwise.
  virtual void encode(uint64_t offset, uint64_t step, Floats gradient, Buffer& payload) = 0;

  // What is kept of all slices, as the flat array lies; empty if nothing ever is.
  Floats unsent() const { return kept; }

protected:
  // Keeps a number for each of so many values.
  explicit Compressor(uint64_t values): kept(zeros(values)) {}

  static kj::Array<float> zeros(uint64_t size);
  // For gradients that are not finite: they would be kept for ever, and their values never change
  // again.
  [[noreturn]] static void failNotFinite();

  kj::Array<float> kept;
};

// What workers push in place of their gradients. A row of the table with the keys of an experiment;
// by itself the row `none`: all values are sent. Immutable; any thread.
class Compression: public kj::AtomicRefcounted {
public:
  // How pushes are written down where `wire` says how a number travels.
  virtual Encoding pushes(Number wire) const { return {.numbers = wire}; }
  // How sums of at most so many pushes are. Exact but for halves.
  virtual Encoding sums(Number wire, uint pushes) const { return {.numbers = wire}; }
  // The share of values that a push holds, after any warm-up.
  virtual double sentShare() const { return 1; }
  // What must be the same at both ends, for messages; empty if there is nothing to say.
  virtual kj::String words() const { return kj::String(); }

  // For one of so many workers, and a flat array of so many values. This object must outlive it.
  virtual kj::Own<Compressor> newCompressor(Number wire, uint64_t values, uint workers) const;
};

}  // namespace rpc::codec
