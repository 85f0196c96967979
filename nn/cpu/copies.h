// nn/cpu/copies.h: tasks that move images from one place or layout to another.
#pragma once

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// `values` of each image one after another; from floats to bfloat16s, which rounds, and, if they
// are SET, back.
kj::Own<Task> copy(size_t values, Place from, Place to, Write write);
// The same of whole blocked images or whole blocks of channels of them.
kj::Own<Task> copy(Extent extent, Place from, Place to, Write write);
// Channels [fromChannel, fromChannel + channels) to those from `toChannel` on, wherever blocks
// begin. The channels that pad the last block of `to` become 0 if the run ends at its last channel.
kj::Own<Task> copyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
    uint toChannel, uint channels, Write write);

// Between plain C×H×W and blocked images. What is blocked comes as floats.
kj::Own<Task> block(Extent extent, Place plain, Place blocked, Write write);
kj::Own<Task> unblock(Extent extent, Place blocked, Place plain);

}  // namespace nn::cpu
