// tests/in_child.h: calls a function in a child process, for tests of code that ends its process.
#pragma once

#include <kj/function.h>
#include <kj/string.h>

namespace tests {

struct ChildEnd {
  int status;         // of waitpid()
  kj::String errors;  // what it wrote to stderr
};

// Calls `act` in a copy of this process, which ends with exit code 0 if `act` returns, and 1 if it
// throws. Waits for the end of the copy. The calling process must have one thread only.
ChildEnd inChild(kj::FunctionParam<void()> act);

}  // namespace tests
