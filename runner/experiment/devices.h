// runner/experiment/devices.h: the words of cluster.devices, and the devices of this machine that
// they name.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "nn/program.h"
#include "rpc/modes/mode.h"

namespace runner {

using kj::uint;

// Reports errors in the `devices` of a worker with this mode and batch. `reader` is that of the
// whole file. Does not check whether this machine has the devices, because files are checked on
// other machines too.
void checkDevices(configs::Reader& reader, kj::ArrayPtr<const kj::String> devices,
    const rpc::ModeRow& mode, uint batchSize);

// Returns in a few words why this machine cannot compute on `device`, or null if it can. `device`
// must have passed checkDevices(). Looks for GPUs only if the word names one.
kj::Maybe<kj::String> whyNotHere(kj::StringPtr device);

// Whether the word names a GPU. False for a word that checkDevices() refuses.
bool isGpu(kj::StringPtr device);
// Whether any of these words names a GPU.
bool haveGpu(kj::ArrayPtr<const kj::String> devices);

// Returns the device that a word names. The word must have passed checkDevices().
nn::Target targetOf(kj::StringPtr device);

// Returns `devices` with the GPU numbers that they have after `others` workers that use as many
// GPUs each: after one, ["cuda:0", "cuda:1"] is ["cuda:2", "cuda:3"]. CPUs keep their numbers.
kj::Array<kj::String> devicesAfter(kj::ArrayPtr<const kj::String> devices, uint others);

// Returns one line per kind of device of this machine, or per GPU: `cuda:0: NVIDIA H100 80GB HBM3,
// 79.2 GiB, compute capability 9.0`; `cuda: no GPU found (no driver)`.
kj::String describeDevices();

}  // namespace runner
