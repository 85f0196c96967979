// runner/system/output.h: writes to standard output and standard error, which may be slow.
#pragma once

#include <kj/common.h>
#include <kj/memory.h>
#include <kj/string.h>

#include <atomic>

namespace runner {

class OutputWriter;

// Writes all of `text` to `fd`, or nothing if `error` is not 0. If it cannot be written, stores
// errno in `error`. While an OutputThread exists, its thread does this later, so `error` must
// outlive that thread. For any thread.
void writeOutput(int fd, kj::String text, std::atomic<int>& error);

// Writes all of `text` in the same way. Ignores errors, because nobody is left who could be told.
// Like writeOutput(), gives up if nobody reads and isInterrupted() is true.
void writeQuietly(int fd, kj::String text);
// Writes `line` and a newline in the same way. Control characters are shown as configs::printable()
// shows them, because a line may contain names from any source.
void writeLineQuietly(int fd, kj::StringPtr line);

// Whether so much output waits for its reader that text which is soon out of date, such as
// progress, should be dropped. False without an OutputThread.
bool isOutputBehind();

// Waits until all output has been written. Call it before the process ends. An interrupted process
// waits for at most 2 s, because whoever ended it wants it to be gone. Otherwise, if the writing
// takes longer than 2 s, each of interrupts() ends the process from then on with exit code
// INTERRUPTED, whatever it did before.
void finishOutput(bool isInterrupted = false);

// While this object lives, a separate thread writes the output of the functions above, in the order
// of their calls. The callers then need not wait for a slow reader, such as a terminal that is
// stopped (Ctrl-S) or a pager. An event loop that must answer other processes and signals needs
// this. A caller waits only while 64 MiB are not written yet, because no output may be lost. At
// most one object per process.
class OutputThread {
public:
  OutputThread();
  // Does what finishOutput() does.
  ~OutputThread() noexcept(false);
  KJ_DISALLOW_COPY(OutputThread);

private:
  kj::Own<OutputWriter> writer;
};

}  // namespace runner
