// nn/cpu/copies.h: tasks that move images from one place or layout to another.
#pragma once

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// Whole images or whole blocks of channels of them.
kj::Own<Task> copy(Extent extent, Place from, Place to, Write write);
// Channels [fromChannel, fromChannel + channels) to those from `toChannel` on, wherever blocks
// begin. The channels that pad the last block of `to` become 0 if the run ends at its last channel.
kj::Own<Task> copyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
    uint toChannel, uint channels, Write write);

// Between plain C×H×W and blocked images.
kj::Own<Task> block(Extent extent, Place plain, Place blocked, Write write);
kj::Own<Task> unblock(Extent extent, Place blocked, Place plain);

}  // namespace nn::cpu
