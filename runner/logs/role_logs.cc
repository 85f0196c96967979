#include "runner/logs/role_logs.h"

#include <dirent.h>
#include <kj/common.h>

#include "configs/language/printable.h"
#include "runner/logs/log_lines.h"
#include "runner/logs/log_styles.h"
#include "runner/logs/role_names.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Returns the line `2016-01-22 14:22:03,897 worker 0: joined the job`.
kj::String lineOf(Event::Reader event, Role role, uint index, kj::StringPtr words) {
  auto time = momentOf(event.getTimeS());
  return kj::str(logTime(time), roleName(role, index), ": ", configs::printable(words));
}

// Describes `event` in plain words. Empty if the log's style has a line for it.
kj::String wordsOf(Event::Reader event) {
  switch (event.which()) {
    case Event::JOINED: {
      auto joined = event.getJoined();
      return kj::str("joined the job, process ", joined.getPid(),
          joined.getAddress().size() == 0 ? kj::str()
                                          : kj::str(", listens on ", joined.getAddress()));
    }
    case Event::BEGUN:
      return kj::str("has the initial values and takes its first step; ",
          event.getBegun().getUpdates(), event.getBegun().hasBits() ? "; " : "",
          event.getBegun().getBits());
    case Event::BAD_RECORD:
      return kj::str("warning: ", event.getBadRecord().getReason());
    case Event::BEST:
      return kj::str("keeps the weights of epoch ", event.getBest().getEpoch(),
          ", the best one so far, with validation accuracy ", event.getBest().getAccuracy());
    case Event::AVERAGED:
      return kj::str("has validated the moving average of the weights: accuracy ",
          event.getAveraged().getAccuracy());
    case Event::ENDED:
      return kj::str("has done its last step, ", event.getEnded().getStep());
    default:
      return nullptr;
  }
}

// Returns how the job ended. Empty if the event does not end it.
kj::String endOf(Event::Reader event) {
  switch (event.which()) {
    case Event::FINISHED:
      return kj::str("the job is done, weights sha256=", event.getFinished().getWeightsSha256());
    case Event::STOPPED:
      return kj::str("the job was stopped: ", event.getStopped().getReason());
    default:
      return brokenEndOf(event);
  }
}

// Calls `take` with the role and the index of each file in `folder`.
void eachLog(const RunFolder& folder, kj::FunctionParam<void(Role role, uint index)> take) {
  DIR* dir = ::opendir(folder.path.cStr());
  if (dir == nullptr) return;  // writing the files will fail too, with a reason
  KJ_DEFER(::closedir(dir));
  while (dirent* entry = ::readdir(dir)) {
    kj::StringPtr name = entry->d_name;
    for (auto role: {Role::SERVER, Role::WORKER}) {
      auto begin = kj::str(roleWord(role), "-");
      constexpr kj::StringPtr END = ".log"_kj;
      if (!name.startsWith(begin) || !name.endsWith(END)) continue;
      auto digits = kj::str(name.slice(begin.size(), name.size() - END.size()));
      KJ_IF_MAYBE(index, parseWhole(digits)) {
        // Ignores names such as worker-007.log.
        bool isIndex = *index <= uint(kj::maxValue) && kj::str(*index) == digits;
        if (isIndex) take(role, uint(*index));
      }
    }
  }
}

}  // namespace

RoleLogs::RoleLogs(const RunFolder& folder): folder{kj::str(folder.path)} {}

void RoleLogs::reopen() {
  eachLog(folder, [this](Role role, uint index) {
    removeTornLine(folder.roleLog(roleWord(role), index));
    fileOf(role, index);
  });
}

void RoleLogs::restart(kj::ArrayPtr<const FileExtent> extents) {
  eachLog(folder, [this, extents](Role role, uint index) {
    auto& file = fileOf(role, index);
    cutFile(file.path(), bytesOf(extents, file.path().slice(folder.path.size() + 1)));
  });
}

void RoleLogs::eachFile(kj::FunctionParam<void(const LineFile& file)> take) const {
  for (auto& log: logs) take(log.file);
}

void RoleLogs::append(Event::Reader event, kj::ArrayPtr<const kj::String> lines) {
  if (event.isPlaced()) {
    auto placed = event.getPlaced();
    uint server = placed.getServer();
    fileOf(Role::SERVER, server)
        .append(lineOf(event, Role::SERVER, server,
            kj::str("holds ", placed.getBytes(), " bytes of ", placed.getKey())));
    return;
  }
  auto end = endOf(event);
  if (end.size() > 0) {
    for (auto& log: logs) log.file.append(lineOf(event, log.role, log.index, end));
    return;
  }
  if (event.getRole() == Role::COORDINATOR) return;
  auto& file = fileOf(event.getRole(), event.getIndex());
  for (auto& line: lines) file.append(line);
  auto words = wordsOf(event);
  if (words.size() > 0) file.append(lineOf(event, event.getRole(), event.getIndex(), words));
}

LineFile& RoleLogs::fileOf(Role role, uint index) {
  for (auto& log: logs) {
    if (log.role == role && log.index == index) return log.file;
  }
  return logs.add(Log{role, index, LineFile(folder.roleLog(roleWord(role), index))}).file;
}

}  // namespace runner
