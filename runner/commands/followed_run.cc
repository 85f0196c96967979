#include "runner/commands/followed_run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/logs/run_lock.h"
#include "runner/system/command_line.h"
#include "runner/system/terminal.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// How often to look for new text. A network file system does not announce it.
constexpr auto LOOK_INTERVAL = 200 * kj::MILLISECONDS;
// How often to ask Slurm. Its controller serves many users, so this is rare.
constexpr auto QUEUE_INTERVAL = 2 * kj::SECONDS;
// How many bytes show whether a file was cut: about two lines of a log.
constexpr size_t LAST_BYTES = 256;

// Returns the file to which the newest launcher of `folder` writes its messages. Throws if it
// writes them to a terminal only.
kj::String spokenFileOf(const RunFolder& folder) {
  if (slurmJobOf(folder) != nullptr) return folder.output();
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) {
    if (holder->isInBackground) return folder.output();
  }
  if (!isSweep(folder)) return folder.log();
  configs::fail("the sweep in ", folder.path,
      " was started without --detach, so only its terminal shows it. Name the folder of one of "
      "its runs, or see `runner table ",
      folder.path, "`");
}

}  // namespace

// A file that was cut may have grown beyond `offset` again. Its new lines have other times, so the
// bytes before `offset` differ.
bool GrowingFile::isAsBefore(int fd) const {
  char found[LAST_BYTES];
  auto count = ::pread(fd, found, last.size(), offset - last.size());
  if (count < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  return kj::arrayPtr(found, count) == last.asArray();
}

kj::String GrowingFile::more() {
  begunAnew = false;
  // A network file system may show other machines' writes only after the file is opened again.
  // Opening a FIFO would wait for its writer.
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0 && errno == ENOENT) return nullptr;
  if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  begunAnew = !isAsBefore(fd);
  if (begunAnew) {
    offset = 0;
    last = nullptr;
  }
  kj::Vector<char> text;
  char buffer[65536];
  ssize_t n;
  while ((n = ::pread(fd, buffer, sizeof(buffer), offset)) > 0) {
    offset += n;
    text.addAll(buffer, buffer + n);
  }
  if (n < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  auto known = kj::str(last, text.asPtr());
  last = kj::str(known.slice(known.size() - kj::min(known.size(), LAST_BYTES)));
  return kj::heapString(text.begin(), text.size());
}

kj::String FollowedLog::more() {
  auto text = file.more();
  size_t same = 0;
  if (wasCut()) {
    while (same < text.size() && same < read.size() && text[same] == read[same]) same++;
    while (same > 0 && text[same - 1] != '\n') same--;
    read.truncate(same);
  }
  read.addAll(text.slice(same));
  return kj::heapString(text.slice(same));
}

FollowedRun::FollowedRun(RunFolder ownFolder, kj::AsyncIoContext& io, kj::Maybe<uint> tasks)
    : folder(kj::mv(ownFolder)),
      io(io),
      tasks(tasks),
      job(slurmJobOf(folder)),
      queue(io),
      said(spokenFileOf(folder)),
      messages(folder.messages()) {}

kj::Promise<void> FollowedRun::follow() {
  if (job == nullptr) {
    return look().then([this]() -> kj::Promise<void> {
      // The process that has ended may have submitted the run.
      job = slurmJobOf(folder);
      if (job == nullptr) return kj::READY_NOW;
      return follow();
    });
  }
  return look().exclusiveJoin(kj::evalLater([this]() { return watchQueue(); }));
}

kj::Promise<void> FollowedRun::look() {
  // This comes first, so that nothing is missed that was written before the end.
  bool isLast = isOver(isHeld(folder));
  printMore();
  if (isLast) {
    if (message.size() > 0) tell(kj::heapString(message));
    return kj::READY_NOW;
  }
  return io.provider->getTimer().afterDelay(LOOK_INTERVAL).then([this]() { return look(); });
}

kj::Promise<void> FollowedRun::outputLost() {
  if (isOutputLost()) return kj::READY_NOW;
  auto later = io.provider->getTimer().afterDelay(LOOK_INTERVAL);
  return later.then([this]() { return outputLost(); });
}

bool FollowedRun::isOver(bool held) const {
  if (job == nullptr) return !held;
  if (isGone) return true;
  if (held) return false;
  KJ_IF_MAYBE(code, lastExitCodeOf(folder)) {
    // Only Slurm knows whether it ended the run.
    return *code == OK || *code == MISSED || !hasAnswer;
  }
  return false;
}

kj::Promise<void> FollowedRun::watchQueue() {
  return queue.look(kj::arrayPtr(&KJ_ASSERT_NONNULL(job), 1))
      .then([this](kj::Maybe<SlurmQueue::Jobs>&& answer) -> kj::Promise<void> {
        if (hasAnswer && answer == nullptr) {
          tell("warning: squeue does not answer, so the state of the job is not known");
        }
        hasAnswer = answer != nullptr;
        KJ_IF_MAYBE(jobs, answer) {
          isGone = true;
          for (auto& each: *jobs) {
            isGone = each.isOver();
            note(each);
            newest = kj::mv(each);
          }
        }
        // look() is about to notice the end, and prints the remaining text.
        if (isGone) return kj::NEVER_DONE;
        auto later = io.provider->getTimer().afterDelay(QUEUE_INTERVAL);
        return later.then([this]() { return watchQueue(); });
      });
}

void FollowedRun::note(const SlurmJob& found) {
  kj::String sentence;
  if (found.isWaiting()) {
    auto reason = found.reason.size() == 0 ? kj::str() : kj::str(" (", found.reason, ")");
    auto what = kj::str();
    KJ_IF_MAYBE(n, tasks) what = kj::str(" for ", counted(*n, "task"));
    sentence = kj::str("job ", found.id, " of Slurm: waiting", what, reason);
  } else if (found.state == "RUNNING") {
    sentence = kj::str("job ", found.id, " of Slurm runs on ", found.nodes);
  }
  if (sentence.size() > 0 && sentence != told) {
    tell(sentence);
    told = kj::mv(sentence);
  }
}

void FollowedRun::printMore() {
  auto more = said.more();
  if (said.wasCut()) tell(kj::str(folder.path, " continues from an earlier step"));
  print(more);
  if (job == nullptr) return;
  for (char c: messages.more()) {
    if (c != '\n') {
      message.add(c);
    } else {
      tell(kj::heapString(message));
      message.clear();
    }
  }
}

kj::Maybe<kj::String> FollowedRun::reasonOfSlurm() const {
  if (job == nullptr || !hasAnswer) return nullptr;
  return whySlurmEnded(folder, newest);
}

LaunchEnd FollowedRun::end() const {
  KJ_IF_MAYBE(reason, reasonOfSlurm()) return {RUN_FAILED, kj::mv(*reason)};
  return endOf(folder);
}

}  // namespace runner
