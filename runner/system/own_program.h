// runner/system/own_program.h: starts this very program again.
#pragma once

namespace runner {

// Replaces the process by a new start of its own program with `arguments` (null at the end; the
// first is the program's name). Returns only if that fails, with the reason in errno. Uses
// /proc/self/exe, which stays valid if the file was replaced. Without /proc, uses the path by which
// this process was started. Allocates nothing, and can be called between fork and exec.
void becomeOwnProgram(char* const* arguments);

}  // namespace runner
