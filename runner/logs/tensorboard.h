// runner/logs/tensorboard.h: writes the curves of a run as event files for TensorBoard.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/map.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <stdint.h>

#include "runner/logs/job.capnp.h"
#include "runner/system/files.h"
#include "runner/system/growing_files.h"

namespace runner {

using kj::uint;

// Returns the checksum by Castagnoli's polynomial, reflected, as in RFC 3720 (appendix B.4).
uint32_t crc32c(kj::ArrayPtr<const kj::byte> bytes);

// The records of a file. Each has the length of its data (uint64), the masked crc32c of these 8
// bytes, the data, and the masked crc32c of the data. All are little-endian. Masking rotates right
// by 15 bits and adds 0xa282ead8. The data is an Event of tensorflow/core/util/event.proto in
// protobuf's wire format.

// Returns the first record of a file: the version of its format. `time_s` counts from 1970.
kj::Array<kj::byte> versionRecord(double time_s);

// One point of a curve.
struct Scalar {
  kj::StringPtr tag;
  float value;
};

// Returns a record with points of several curves at one step.
kj::Array<kj::byte> scalarsRecord(double time_s, uint64_t step, kj::ArrayPtr<const Scalar> scalars);

// Writes the curves of a run below its folder `tensorboard` as its events come:
//
//     worker-<r>/   train/loss, train/accuracy (of the epoch so far), images_per_s, learning_rate
//                   at each speed line; epoch/loss, epoch/accuracy, epoch/seconds
//     validation/   validation/loss, validation/accuracy, and with log.top_k = 5 also
//                   validation/top_5_accuracy, once per epoch: the common result of all workers, or
//                   that of the first worker if each validates all records
//
// Each file is called `events.out.tfevents.<seconds since 1970>.runner`. Steps are those of the
// whole job. Every record goes to the kernel in one write, so that a kill can only cut off the last
// one.
class TensorBoard {
public:
  // `folder` is made when the first point comes.
  explicit TensorBoard(kj::StringPtr folder): folder(kj::str(folder)) {}

  // Removes `folder` with all curves.
  static void removeFrom(kj::StringPtr folder);
  // Truncates the files of the curves to `extents`, in which their names begin with "tensorboard/",
  // and continues them. Removes all others. Throws with path and cause.
  void restart(kj::ArrayPtr<const FileExtent> extents);

  // Calls `take` with each file that is open.
  void eachFile(kj::FunctionParam<void(const LineFile& file)> take) const;

  // Throws if a file cannot be written (a full disk).
  void append(Event::Reader event);

private:
  void add(kj::StringPtr name, double time_s, uint64_t step, kj::ArrayPtr<const Scalar> scalars);

  kj::String folder;
  kj::HashMap<kj::String, LineFile> files;  // by the name of their folder below `folder`
  kj::uint validatedEpoch = 0;              // the last one on the curve of validations
};

}  // namespace runner
