// nn/cpu/copies.h: tasks that move images from one place or layout to another.
#pragma once

#include "nn/cpu/tasks.h"

namespace nn::cpu {

// Copies `values` of each image, one after another. Copies also from floats to bfloat16s, which
// rounds, and with SET from bfloat16s to floats.
kj::Own<Task> copy(size_t values, Place from, Place to, Write write);
// Copies whole blocked images, or whole blocks of their channels.
kj::Own<Task> copy(Extent extent, Place from, Place to, Write write);
// to = ReLU(to + from). Both hold the same element.
kj::Own<Task> addRelu(Extent extent, Place from, Place to);
// Copies channels [fromChannel, fromChannel + channels) to those from `toChannel` on, wherever
// blocks begin. The channels that pad the last block of `to` become 0 if the copy ends at its last
// channel.
kj::Own<Task> copyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
    uint toChannel, uint channels, Write write);

// Convert between plain C×H×W and blocked images. block() reads floats. Images that only fill a
// group get the values of the last image, and are not written to plain ones.
kj::Own<Task> block(Extent extent, Batch batch, Place plain, Place blocked, Write write);
kj::Own<Task> unblock(Extent extent, Batch batch, Place blocked, Place plain);

}  // namespace nn::cpu
