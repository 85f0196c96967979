#include "runner/system/copied_program.h"

#include <fcntl.h>
#include <kj/vector.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <filesystem>

#include "runner/system/program_package.h"

namespace runner {

namespace {

constexpr size_t SHA256_DIGITS = 64;

// Whether `name` begins with the checksum of a tar. Other files are not ours.
bool isOurs(kj::StringPtr name) {
  return ::strspn(name.cStr(), "0123456789abcdef") >= SHA256_DIGITS;
}

}  // namespace

kj::Maybe<CopiedProgram> CopiedProgram::find() {
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return nullptr;
  auto folder = program.parent_path();
  bool isCopied =
      isOurs(folder.filename().c_str()) && folder.parent_path().filename() == "programs";
  if (!isCopied) return nullptr;
  return CopiedProgram(kj::str(folder.c_str()));
}

bool CopiedProgram::isUnchanged() const {
  return ProgramPackage().isUnchangedIn(folder);
}

void CopiedProgram::noteUse() const {
  ::utimensat(AT_FDCWD, folder.cStr(), nullptr, 0);
}

void CopiedProgram::removeUnused() const {
  constexpr time_t DAY_S = 24 * 60 * 60;
  auto limit = ::time(nullptr) - time_t(UNUSED_DAYS) * DAY_S;
  std::error_code error;
  std::filesystem::path own = folder.cStr();
  // The list comes first, because it must not change while it is read.
  kj::Vector<std::filesystem::path> unused;
  for (auto& entry: std::filesystem::directory_iterator(own.parent_path(), error)) {
    auto& path = entry.path();
    struct stat status;
    if (!isOurs(path.filename().c_str()) || path == own) continue;
    if (::stat(path.c_str(), &status) == 0 && status.st_mtime < limit) unused.add(path);
  }
  for (auto& path: unused) std::filesystem::remove_all(path, error);
}

}  // namespace runner
