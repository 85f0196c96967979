// runner/experiment/devices.h: the words of cluster.devices, and what stands behind them on this
// machine.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "nn/program.h"
#include "rpc/modes/mode.h"

namespace runner {

using kj::uint;

// Reports what is wrong with the `devices` of a worker, whose mode and batch these are. `reader` is
// that of the whole file. Whether this machine has them is another matter: a file is checked on
// others, too.
void checkDevices(configs::Reader& reader, kj::ArrayPtr<const kj::String> devices,
    const rpc::ModeRow& mode, uint batchSize);

// Why nothing can be computed here on a device that checkDevices() finds nothing wrong with, in a
// few words; null if it can. Looks for GPUs only where the word names one.
kj::Maybe<kj::String> whyNotHere(kj::StringPtr device);

// Whether the word names a GPU; false for what checkDevices() finds something wrong with.
bool isGpu(kj::StringPtr device);

// What a word that checkDevices() finds nothing wrong with stands for.
nn::Target targetOf(kj::StringPtr device);

// A line for each kind of device of this machine, or for each GPU: `cuda:0: NVIDIA H100 80GB HBM3,
// 79.2 GiB, compute capability 9.0`; `cuda: no GPU found (no driver)`.
kj::String describeDevices();

}  // namespace runner
