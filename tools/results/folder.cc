#include "tools/results/folder.h"

#include <kj/filesystem.h>
#include <kj/vector.h>
#include <string.h>
#include <sys/stat.h>

#include <filesystem>

#include "configs/language/document.h"
#include "configs/language/failure.h"
#include "io/datasets/archives.h"
#include "io/paths.h"
#include "runner/system/files.h"
#include "tools/results/page.h"

namespace tools {

namespace {

// People read the page, so it cannot be larger.
constexpr uint64_t PAGE_BYTES_MAX = 1 << 24;
// A log of some hundred epochs has a megabyte. A larger one has a line for every step, and should
// not be kept with the sources.
constexpr uint64_t LOG_BYTES_MAX = 1 << 26;

constexpr kj::StringPtr LOG_ENDING = ".log.xz"_kj;

// Whether the file begins like an xz file.
bool isXz(kj::StringPtr path) {
  constexpr kj::byte MAGIC[] = {0xfd, '7', 'z', 'X', 'Z', 0};
  auto bytes = io::readFile(path, LOG_BYTES_MAX);
  return bytes.size() > sizeof(MAGIC) && memcmp(bytes.begin(), MAGIC, sizeof(MAGIC)) == 0;
}

kj::Array<KeptLog> readLogs(kj::StringPtr folder) {
  kj::Vector<KeptLog> logs;
  auto below = io::allBelow(folder);
  if (below.unreadable.size() > 0) {
    configs::fail("cannot read ", below.unreadable[0], " in ", folder);
  }
  for (auto& file: below.files) {
    if (!file.endsWith(LOG_ENDING)) continue;
    auto path = kj::str(folder, "/", file);
    if (!isXz(path)) {
      configs::fail(
          path, " is not an xz file. Keep logs with tools/keep_log.py, or pack it with xz");
    }
    auto bytes = io::readUnpacked(path, LOG_BYTES_MAX,
        "The kept log is cut short or damaged: remove it, and keep the log again with "
        "tools/keep_log.py");
    logs.add(KeptLog{kj::heapString(file.slice(0, file.size() - LOG_ENDING.size())),
        kj::heapString(bytes.asChars())});
  }
  return logs.releaseAsArray();
}

bool isFile(kj::StringPtr path) {
  struct stat status;
  return stat(path.cStr(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

PageOutcome makePage(kj::StringPtr path, PageAction action) {
  auto page = runner::readRegular(path, PAGE_BYTES_MAX);
  auto base = kj::heapString(path.slice(0, path.size() - io::baseName(path).size()));
  auto folder = kj::str(base, "results");
  auto indexPath = kj::str(folder, "/index.toml");
  if (!isFile(indexPath)) {
    configs::fail(path, " is not a results page: there is no ", indexPath,
        ", which says what its tables are made of");
  }
  auto logs = readLogs(folder);
  auto names = KJ_MAP(log, logs)->kj::StringPtr {
    return log.name;
  };

  auto filesystem = kj::newDiskFilesystem();
  configs::Diagnostics diagnostics;
  auto document = configs::load(
      filesystem->getRoot(), indexPath, nullptr, diagnostics, filesystem->getCurrentPath());
  configs::Reading reading{diagnostics, {}};
  auto index = configs::readDocument(*document, reading, [&](configs::Reader& reader) {
    return ResultsIndex::read(
        reader, names, [&](kj::StringPtr file) { return isFile(kj::str(base, file)); });
  });
  if (diagnostics.count() > 0) {
    return {diagnostics.format(indexPath, nullptr, "no table was written"), nullptr};
  }

  auto result = readPage(path, page, index, logs);
  auto complaints = result.complaints(path);
  if (action == PageAction::CHECK || complaints.size() == 0) return {nullptr, kj::mv(complaints)};
  // Keeps a link, and replaces the file to which it leads.
  auto file = std::filesystem::canonical(path.cStr());
  runner::writeWhole(file.c_str(), result.updated());
  kj::Vector<kj::String> lines;
  for (auto& table: result.tables) {
    if (table.current != table.fresh) {
      lines.add(kj::str(path, ": the table `", table.name, "` is rewritten"));
    }
  }
  return {nullptr, lines.releaseAsArray()};
}

}  // namespace tools
