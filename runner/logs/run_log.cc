#include "runner/logs/run_log.h"

#include <capnp/message.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "runner/logs/events.h"
#include "runner/system/growing_files.h"

namespace runner {

namespace {

LineFile newEvents(const RunFolder& folder) {
  KJ_IF_MAYBE(file, LineFile::create(folder.events())) return kj::mv(*file);
  configs::fail(folder.path, " holds a run already: ", folder.events(),
      " exists. Choose a folder without a run");
}

// Whether all logs begin as they were, in the same style and with the same curves.
bool areAsBefore(
    const RunFolder& folder, const LogStyle& style, bool hasBoard, const LogExtents& logs) {
  if (logs.files.size() == 0 || logs.style != style.name) return false;
  bool hadBoard = false;
  GrowingFiles growing(folder.path);
  for (auto& file: logs.files) {
    hadBoard = hadBoard || file.name.startsWith("tensorboard/");
    bool isSame = false;
    auto compare = [&]() {
      isSame = growing.sumOf(file.name, file.bytes, file.name) == file.crc32;
    };
    if (kj::runCatchingExceptions(compare) != nullptr || !isSame) return false;
  }
  return hadBoard == hasBoard;
}

}  // namespace

void refuseOtherFiles(const RunFolder& folder, kj::FunctionParam<bool(kj::StringPtr)> isOfRun) {
  if (::access(folder.events().cStr(), F_OK) == 0) {
    if (lastLineOf(folder.events()).size() == 0 || beginsWithEvent(folder)) return;
    configs::fail(folder.events(), " does not begin with an event of a run. Name another folder");
  }
  auto experiment = folder.experiment();
  bool wasKilled = ::access(experiment.cStr(), F_OK) == 0 && isOfRun(experiment);
  for (auto& path: writtenIn(folder)) {
    if (wasKilled && (path == experiment || path.endsWith(".log"))) continue;
    configs::fail("a run in this folder would replace ", path,
        ", which no run has written. Name another folder");
  }
}

RunLog::Tell RunLog::toLauncher(kj::AutoCloseFd pipe) {
  LineFile lines(kj::mv(pipe), "the launcher's pipe");
  return [lines = kj::mv(lines)](Event::Reader, kj::StringPtr json) mutable { lines.append(json); };
}

RunLog::Tell RunLog::toNobody() {
  return [](Event::Reader, kj::StringPtr) {};
}

RunLog::RunLog(const RunFolder& folder, const LogStyle& style, Tell tell,
    kj::Maybe<TensorBoard> board, kj::Maybe<kj::Own<const LogAccess>> access)
    : RunLog(newEvents(folder), folder, style, kj::mv(tell), kj::mv(board), kj::mv(access)) {}

RunLog RunLog::resume(const RunFolder& folder, const LogStyle& style, Tell tell,
    kj::Maybe<TensorBoard> board, kj::Maybe<kj::Own<const LogAccess>> access, uint64_t events_bytes,
    const LogExtents& logs) {
  // A run that was lost at once may lack these files.
  LineFile events(folder.events());
  LineFile lines(folder.log());
  cutFile(folder.events(), events_bytes);
  bool stay = areAsBefore(folder, style, board != nullptr, logs);
  auto kept = stay ? logs.files.asPtr() : nullptr;
  cutFile(folder.log(), bytesOf(kept, "log.txt"));
  if (kept.size() == 0) TensorBoard::removeFrom(folder.tensorboard());
  KJ_IF_MAYBE(b, board) b->restart(kept);
  RunLog log(kj::mv(events), folder, style, kj::mv(tell), kj::mv(board), kj::mv(access));
  log.eventsCrc32 = GrowingFiles(folder.path).sumOf("events.jsonl", events_bytes, folder.events());
  log.roles.restart(kept);
  if (stay) {
    // The writer keeps what some events say, for later lines.
    eachEventButSpeed(folder, [&](Event::Reader event) { linesOf(*log.writer, event); });
  } else {
    eachEvent(folder, [&](Event::Reader event) { log.writeOthers(event); });
  }
  return log;
}

void RunLog::eachOther(kj::FunctionParam<void(const LineFile& file)> take) const {
  take(log);
  roles.eachFile(take);
  KJ_IF_MAYBE(b, board) b->eachFile(take);
}

LogExtents RunLog::extents() const {
  kj::Vector<FileExtent> files;
  eachOther([&](const LineFile& file) {
    files.add(FileExtent{kj::str(file.path().slice(folder.path.size() + 1)), file.bytes()});
  });
  return {kj::str(style.name), files.releaseAsArray()};
}

kj::Vector<kj::String> RunLog::removedLogs() const {
  kj::Vector<kj::String> paths;
  eachOther([&](const LineFile& file) {
    if (!file.isInPlace()) paths.add(kj::str(file.path()));
  });
  return paths;
}

RunLog RunLog::reopen(const RunFolder& folder, const LogStyle& style) {
  for (auto& path: {folder.events(), folder.log()}) removeTornLine(path);
  RunLog log(LineFile(folder.events()), folder, style, toNobody(), nullptr, nullptr);
  log.roles.reopen();
  auto line = lastLineOf(folder.events());
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  // Tables say what is wrong with a line that is not an event.
  auto wrong = kj::runCatchingExceptions([&]() { parseEvent(line, event); });
  if (wrong == nullptr && isLast(event)) log.last = kj::mv(line);
  return log;
}

RunLog::RunLog(LineFile events, const RunFolder& folder, const LogStyle& style, Tell tell,
    kj::Maybe<TensorBoard> board, kj::Maybe<kj::Own<const LogAccess>> access)
    : folder{kj::str(folder.path)},
      style(style),
      events(kj::mv(events)),
      log(folder.log()),
      roles(folder),
      writer(style.writer()),
      tell(kj::mv(tell)),
      board(kj::mv(board)),
      access(kj::mv(access)) {}

void RunLog::append(Event::Reader event) {
  auto json = formatEvent(event);
  KJ_IF_MAYBE(a, access) {
    (*a)->use([&]() { write(event, json); });
  } else {
    write(event, json);
  }
  // This call is outside of the lock, because a launcher that closes the access does not read the
  // pipe.
  tell(event, json);
}

void RunLog::write(Event::Reader event, kj::StringPtr json) {
  KJ_REQUIRE(last == nullptr, "the run has ended");
  events.append(json);
  eventsCrc32 = io::crc32("\n"_kj.asBytes(), io::crc32(json.asBytes(), eventsCrc32));
  if (isLast(event)) last = kj::str(json);
  writeOthers(event);
}

void RunLog::writeOthers(Event::Reader event) {
  auto lines = linesOf(*writer, event);
  for (auto& line: lines) log.append(line);
  roles.append(event, lines);
  KJ_IF_MAYBE(b, board) b->append(event);
}

kj::Maybe<kj::StringPtr> RunLog::lastEvent() const {
  KJ_IF_MAYBE(line, last) return kj::StringPtr(*line);
  return nullptr;
}

void RunLog::show(Event::Reader event) {
  tell(event, formatEvent(event));
}

}  // namespace runner
