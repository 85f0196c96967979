// nn/lost_device.h: whether a device of this process has failed, rather than the program.
#pragma once

namespace nn {

// Both functions can be called from any thread.

// Records that a device, or its driver, has failed. Its memory is lost, and it can do nothing more
// for this process. Another process may be able to use it. Call it before you throw the exception
// about the failure.
void noteLostDevice();
bool hasLostDevice();

}  // namespace nn
