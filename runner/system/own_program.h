// runner/system/own_program.h: starts this very program again.
#pragma once

namespace runner {

// Becomes this program anew with `arguments` (null at the end; the first is its name). Returns only
// if the system refuses; errno says why. Uses /proc/self/exe, which stays right if the file was
// replaced, or without /proc the path by which this process was started. Allocates nothing: it may
// be called between fork and exec.
void becomeOwnProgram(char* const* arguments);

}  // namespace runner
