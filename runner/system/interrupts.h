// runner/system/interrupts.h: the signals that end a run in order.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// Returns SIGINT and SIGTERM, and also SIGHUP unless this process was started to ignore it (nohup).
// Call this before a handler is set.
kj::Array<int> interrupts();

// Returns why a run was interrupted: "received SIGINT (Ctrl-C)".
kj::StringPtr reasonOfInterrupt(int signal);

// Makes each of interrupts() end this process at once, with `words` on stderr and exit code
// INTERRUPTED, until an event loop captures these signals. Leaves out the words if stderr takes no
// output now. Control characters in `words` are shown as configs::printableLines() shows them.
//
// While `mustCleanUp` returns true, the first signal only makes isInterrupted() true. Code whose
// files nobody else removes must then stop, remove them, and call endInterrupted(). A second signal
// ends the process immediately. Signal handlers call `mustCleanUp`.
void endAtInterrupt(kj::StringPtr words, bool (*mustCleanUp)() = nullptr);
bool isInterrupted();
// Writes `text` to the open file `fd` right before a signal of endAtInterrupt() ends this process:
// at the end of the file or, if `replaces`, in place of its content. `fd` and the memory of `text`
// must stay valid until then, or until the next call. Writes nothing if `fd` is -1.
void writeAtInterrupt(int fd, kj::StringPtr text, bool replaces = false);
// Ends this process as a signal of endAtInterrupt() does.
[[noreturn]] void endInterrupted();

}  // namespace runner
