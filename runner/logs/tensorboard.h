// runner/logs/tensorboard.h: the curves of a run as the event files that TensorBoard reads.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <stdint.h>

#include "runner/logs/job.capnp.h"
#include "runner/system/files.h"

namespace runner {

using kj::uint;

// The checksum of Castagnoli's polynomial, reflected, as RFC 3720 (appendix B.4) has it.
uint32_t crc32c(kj::ArrayPtr<const kj::byte> bytes);

// A file's records. Each is the length of its data (uint64), the masked crc32c of these 8 bytes,
// the data, and the masked crc32c of the data, all little-endian; masked is rotated right by 15
// bits plus 0xa282ead8. Data is an Event of tensorflow/core/util/event.proto in protobuf's wire
// format.

// What a file begins with: its format's version. `time_s` counts from 1970.
kj::Array<kj::byte> versionRecord(double time_s);

// One point of a curve.
struct Scalar {
  kj::StringPtr tag;
  float value;
};

// Points of several curves at one step.
kj::Array<kj::byte> scalarsRecord(double time_s, uint64_t step, kj::ArrayPtr<const Scalar> scalars);

// Writes, as the events of a run come, below its folder `tensorboard`:
//
//     worker-<r>/   train/loss, train/accuracy (of the epoch so far), images_per_s, learning_rate
//                   at each speed line; epoch/loss, epoch/accuracy, epoch/seconds
//     validation/   validation/loss, validation/accuracy, once an epoch: what all workers found
//                   together, or, where each validates the whole, what the first one found
//
// each as `events.out.tfevents.<seconds since 1970>.runner`. Steps are those of the whole job.
// Every record is handed to the kernel at once: what a kill may tear is the last one.
class TensorBoard {
public:
  // `folder` is made when the first point comes.
  explicit TensorBoard(kj::StringPtr folder): folder(kj::str(folder)) {}

  // Throws if a file cannot be written (a full disk).
  void append(Event::Reader event);

private:
  void add(kj::StringPtr name, double time_s, uint64_t step, kj::ArrayPtr<const Scalar> scalars);

  kj::String folder;
  kj::HashMap<kj::String, LineFile> files;  // by the name of their folder
};

}  // namespace runner
