#include "tests/simulation/virtual_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace simulation {

namespace {

// A file or a folder. The disk keeps all of them until its end.
struct Node {
  bool isFolder = false;
  // Of a file: its content at the last fsync(), and whether it has changed since.
  std::string durable;
  bool isDirty = false;
  // By byte: whether it counts as written, but is not on the disk, because an fsync() has failed.
  std::vector<bool> missing;
  std::string last;  // the content that the disk could have when its last name was removed
  // Of a folder.
  using Names = std::map<std::string, Node*>;
  Names names;         // as processes see them
  Names durableNames;  // at the last fsync()
  // Changes since, each of one or two names. Null removes a name.
  using Change = std::vector<std::pair<std::string, Node*>>;
  std::vector<Change> changes;

  static void apply(Names& names, const Change& change) {
    for (auto& [name, node]: change) {
      if (node == nullptr) {
        names.erase(name);
      } else {
        names[name] = node;
      }
    }
  }
  void change(Change change) {
    apply(names, change);
    changes.push_back(std::move(change));
  }

  // Returns the content on the disk after all pending bytes of `content` are written.
  std::string withoutMissing(std::string content) const {
    for (size_t i = 0; i < std::min(content.size(), missing.size()); i++) {
      if (missing[i]) content[i] = i < durable.size() ? durable[i] : '\0';
    }
    return content;
  }
  void failToSync(const std::string& content) {
    missing.resize(content.size());
    for (size_t i = 0; i < content.size(); i++) {
      missing[i] = i >= durable.size() || content[i] != durable[i];
    }
    isDirty = false;
  }
  // These bytes wait for the disk again.
  void write(size_t offset, size_t size) {
    auto end = std::min(offset + size, missing.size());
    for (size_t i = offset; i < end; i++) missing[i] = false;
  }
  void cut(size_t size) { missing.resize(std::min(missing.size(), size)); }
};

std::string contentOf(const char* path) {
  std::string content;
  int fd = ::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  KJ_REQUIRE(fd >= 0, path, strerror(errno));
  char buffer[4096];
  ssize_t count;
  while ((count = ::read(fd, buffer, sizeof(buffer))) > 0) content.append(buffer, count);
  ::syscall(SYS_close, fd);
  return content;
}

}  // namespace

struct VirtualDisk::State {
  explicit State(kj::StringPtr root): root(root.cStr()), top(newNode(true)) {}

  Node* newNode(bool isFolder) {
    auto& node = *nodes.add(kj::heap<Node>());
    node.isFolder = isFolder;
    return &node;
  }
  bool has(const char* path) const {
    return strncmp(path, root.c_str(), root.size()) == 0 &&
           (path[root.size()] == '/' || path[root.size()] == '\0');
  }
  // Returns the folder that holds `path`, and sets `name` to the last part of the path. Null if
  // there is no such folder.
  Node* parentOf(const char* path, std::string& name) const {
    auto folder = top;
    const char* rest = path + root.size();
    while (*rest == '/') rest++;
    for (;;) {
      const char* end = strchr(rest, '/');
      if (end == nullptr) {
        name = rest;
        return folder;
      }
      auto found = folder->names.find(std::string(rest, end));
      if (found == folder->names.end()) return nullptr;
      folder = found->second;
      rest = end + 1;
    }
  }
  Node* find(const char* path) const {
    std::string name;
    auto folder = parentOf(path, name);
    if (folder == nullptr || name.empty()) return folder;
    auto found = folder->names.find(name);
    return found == folder->names.end() ? nullptr : found->second;
  }

  // Calls that are about to fail.
  struct Failures {
    int error = 0;
    uint count = 0;
    std::string part;

    // Returns the error with which the next call for this path fails, or 0.
    int next(const std::string& path) {
      if (count == 0 || path.find(part) == std::string::npos) return 0;
      count--;
      return error;
    }
  };

  // Returns the error with which the change fails, or 0.
  int begin(const std::string& path) {
    if (stopped) return EIO;
    (*onChange)(number++);
    if (stopped) return EIO;
    return failingChanges.next(path);
  }

  const std::string root;
  kj::Vector<kj::Own<Node>> nodes;
  Node* const top;
  struct Open {
    Node* node;
    std::string path;
  };
  std::unordered_map<int, Open> open;
  kj::Function<void(uint64_t)>* onChange = nullptr;
  uint64_t number = 0;
  bool stopped = false;
  bool syncs = true;
  Failures failingChanges, failingSyncs;
  std::string errors;
};

namespace {

VirtualDisk::State* theDisk = nullptr;
// The thread of the disk. Others have no files on it.
thread_local bool isHere = false;

VirtualDisk::State* diskOf(const char* path) {
  return isHere && theDisk != nullptr && theDisk->has(path) ? theDisk : nullptr;
}

VirtualDisk::State::Open* openOf(int fd) {
  if (!isHere || theDisk == nullptr) return nullptr;
  auto found = theDisk->open.find(fd);
  return found == theDisk->open.end() ? nullptr : &found->second;
}

int failedWith(int error) {
  errno = error;
  return -1;
}

int openFile(const char* path, int flags, mode_t mode) {
  auto disk = diskOf(path);
  if (disk == nullptr) return ::syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  bool isNew = (flags & O_CREAT) != 0 && disk->find(path) == nullptr;
  if (isNew || (flags & O_TRUNC) != 0) {
    if (int error = disk->begin(path)) return failedWith(error);
  }
  int fd = ::syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  if (fd < 0) return fd;
  if (isNew) {
    std::string name;
    auto node = disk->newNode(false);
    node->isDirty = true;
    disk->parentOf(path, name)->change({{name, node}});
  }
  auto node = disk->find(path);
  KJ_ASSERT(node != nullptr, "a file that the disk does not know", path);
  if ((flags & O_TRUNC) != 0) {
    node->isDirty = true;
    node->cut(0);
  }
  disk->open[fd] = {node, path};
  return fd;
}

// Before a change of an open file. Returns -1 if it fails.
int beginAt(VirtualDisk::State::Open& file) {
  if (int error = theDisk->begin(file.path)) return failedWith(error);
  file.node->isDirty = true;
  return 0;
}

// After a change of an open file. Returns `size`.
ssize_t wrote(VirtualDisk::State::Open* file, off_t end, ssize_t size) {
  if (file != nullptr && size > 0) file->node->write(end - size, size);
  return size;
}

void syncNode(Node& node, const std::string& path) {
  if (!theDisk->syncs) return;
  if (node.isFolder) {
    node.durableNames = node.names;
    node.changes.clear();
  } else {
    node.durable = node.withoutMissing(contentOf(path.c_str()));
    node.isDirty = false;
  }
}

int syncFile(int fd) {
  auto file = openOf(fd);
  if (file == nullptr) return 0;  // a real disk need not keep what a test writes
  int error = theDisk->begin(file->path);
  if (error == 0) error = theDisk->failingSyncs.next(file->path);
  if (error == 0) {
    syncNode(*file->node, file->path);
    return 0;
  }
  // A dead process has not called it.
  bool hasFailed = !theDisk->stopped && !file->node->isFolder;
  if (hasFailed) file->node->failToSync(contentOf(file->path.c_str()));
  return failedWith(error);
}

void syncAll(Node& node, const std::string& path) {
  syncNode(node, path);
  for (auto& [name, child]: node.names) syncAll(*child, path + "/" + name);
}

// Removes a name, of a file or of an empty folder.
int removeName(const char* path, long call) {
  auto disk = diskOf(path);
  if (disk == nullptr) return ::syscall(call, path);
  auto node = disk->find(path);
  if (node != nullptr) {
    if (int error = disk->begin(path)) return failedWith(error);
    if (!node->isFolder) node->last = node->withoutMissing(contentOf(path));
  }
  int result = ::syscall(call, path);
  if (result == 0) {
    std::string name;
    disk->parentOf(path, name)->change({{name, nullptr}});
  }
  return result;
}

// The state of the nodes after a power failure.
class PowerLoss {
public:
  explicit PowerLoss(Dice& dice): dice(dice) {}

  // Decides what the disk has kept of `node` and of everything below it. Processes see the node at
  // `path`. If `path` is null, no process sees the node any more.
  void strike(Node& node, const char* path) {
    if (!struck.insert(&node).second) return;
    if (!node.isFolder) {
      if (path != nullptr) node.last = node.withoutMissing(contentOf(path));
      if (node.isDirty) strikeContent(node);
      return;
    }
    if (path != nullptr) {
      for (auto& [name, child]: node.names) strike(*child, (path + ("/" + name)).c_str());
    }
    folders.push_back(&node);
  }

  // Call it after all nodes that processes see have been handled.
  void finish() {
    // More folders may be found on the way.
    for (size_t i = 0; i < folders.size(); i++) {
      auto& node = *folders[i];
      for (auto& [name, child]: node.durableNames) strike(*child, nullptr);
      for (auto& change: node.changes) {
        for (auto& [name, child]: change) {
          if (child != nullptr) strike(*child, nullptr);
        }
      }
      auto kept = dice.below(node.changes.size() + 1);
      for (size_t k = 0; k < kept; k++) Node::apply(node.durableNames, node.changes[k]);
    }
  }

private:
  // Keeps what was synced, all that was written, or some blocks of it.
  void strikeContent(Node& node) {
    if (dice.chance(0.4)) return;
    if (dice.chance(0.5)) {
      node.durable = node.last;
      return;
    }
    constexpr size_t BLOCK = 512;
    auto shortest = std::min(node.durable.size(), node.last.size());
    auto longest = std::max(node.durable.size(), node.last.size());
    node.durable.resize(shortest + dice.below(longest - shortest + 1));
    for (size_t at = 0; at < node.durable.size(); at += BLOCK) {
      auto count = std::min(BLOCK, node.durable.size() - at);
      if (at + count <= node.last.size() && dice.chance(0.7)) {
        node.durable.replace(at, count, node.last, at, count);
      }
    }
  }

  Dice& dice;
  std::unordered_set<Node*> struck;
  std::vector<Node*> folders;
};

// Writes what the disk has kept.
void restore(Node& node, const std::string& path) {
  node.changes.clear();
  node.isDirty = false;
  node.missing.clear();
  if (node.isFolder) {
    ::syscall(SYS_mkdir, path.c_str(), 0777);
    node.names = node.durableNames;
    for (auto& [name, child]: node.names) restore(*child, path + "/" + name);
    return;
  }
  int fd = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  KJ_REQUIRE(fd >= 0, path.c_str(), strerror(errno));
  auto written = ::syscall(SYS_write, fd, node.durable.data(), node.durable.size());
  KJ_REQUIRE(written == ssize_t(node.durable.size()));
  ::syscall(SYS_close, fd);
}

}  // namespace

VirtualDisk::VirtualDisk(kj::StringPtr root): state(kj::heap<State>(root)) {
  KJ_REQUIRE(theDisk == nullptr, "there is a virtual disk already");
  KJ_REQUIRE(std::filesystem::is_empty(state->root), "the folder of the disk is not empty", root);
  state->onChange = &onChange;
  theDisk = state;
  isHere = true;
}

VirtualDisk::~VirtualDisk() noexcept(false) {
  theDisk = nullptr;
  isHere = false;
  for (auto& [name, node]: state->top->names) std::filesystem::remove_all(state->root + "/" + name);
}

uint64_t VirtualDisk::changes() const {
  return state->number;
}

void VirtualDisk::stop() {
  state->stopped = true;
}

void VirtualDisk::go() {
  state->stopped = false;
}

void VirtualDisk::fail(int error, uint count, kj::StringPtr part) {
  state->failingChanges = {error, count, part.cStr()};
}

void VirtualDisk::failSyncs(uint count, kj::StringPtr part) {
  state->failingSyncs = {EIO, count, part.cStr()};
}

void VirtualDisk::ignoreSyncs() {
  state->syncs = false;
}

void VirtualDisk::losePower(Dice& dice) {
  KJ_REQUIRE(state->open.empty(), "a file is open", state->open.begin()->second.path.c_str());
  theDisk = nullptr;
  KJ_DEFER(theDisk = state);
  PowerLoss loss(dice);
  loss.strike(*state->top, state->root.c_str());
  loss.finish();
  for (auto& [name, node]: state->top->names) std::filesystem::remove_all(state->root + "/" + name);
  restore(*state->top, state->root);
}

kj::String VirtualDisk::takeErrors() {
  auto errors = kj::heapString(state->errors.data(), state->errors.size());
  state->errors.clear();
  return errors;
}

bool VirtualDisk::hasSaid(kj::StringPtr line) const {
  auto end = kj::str(line, "\n");
  kj::StringPtr errors(state->errors.c_str(), state->errors.size());
  return errors.endsWith(end);
}

}  // namespace simulation

// These replace the C library's functions, in this program and in the libraries that it uses.
extern "C" {

using namespace simulation;

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return openFile(path, flags, mode);
}

int __open_2(const char* path, int flags) {
  return openFile(path, flags, 0);
}

int close(int fd) {
  if (openOf(fd) != nullptr) theDisk->open.erase(fd);
  return ::syscall(SYS_close, fd);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (fd == STDERR_FILENO && isHere && theDisk != nullptr) {
    theDisk->errors.append(static_cast<const char*>(bytes), size);
    return size;
  }
  auto file = openOf(fd);
  if (file != nullptr && beginAt(*file) != 0) return -1;
  auto written = ::syscall(SYS_write, fd, bytes, size);
  return wrote(file, file == nullptr ? 0 : ::lseek(fd, 0, SEEK_CUR), written);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  auto file = openOf(fd);
  if (file != nullptr && beginAt(*file) != 0) return -1;
  auto written = ::syscall(SYS_pwrite64, fd, bytes, size, offset);
  return wrote(file, offset + written, written);
}

int ftruncate(int fd, off_t size) noexcept {
  auto file = openOf(fd);
  if (file != nullptr && beginAt(*file) != 0) return -1;
  if (file != nullptr) file->node->cut(size);
  return ::syscall(SYS_ftruncate, fd, size);
}

int truncate(const char* path, off_t size) noexcept {
  if (auto disk = diskOf(path)) {
    if (int error = disk->begin(path)) return failedWith(error);
    if (auto node = disk->find(path)) {
      node->isDirty = true;
      node->cut(size);
    }
  }
  return ::syscall(SYS_truncate, path, size);
}

int fsync(int fd) {
  return syncFile(fd);
}

int fdatasync(int fd) {
  return syncFile(fd);
}

int syncfs(int fd) noexcept {
  auto file = openOf(fd);
  if (file == nullptr) return 0;
  if (int error = theDisk->begin(file->path)) return failedWith(error);
  syncAll(*theDisk->top, theDisk->root);
  return 0;
}

int unlink(const char* path) noexcept {
  return removeName(path, SYS_unlink);
}

int rmdir(const char* path) noexcept {
  return removeName(path, SYS_rmdir);
}

// std::filesystem removes whole folders with this function.
int unlinkat(int folder, const char* name, int flags) noexcept {
  auto call = (flags & AT_REMOVEDIR) != 0 ? SYS_rmdir : SYS_unlink;
  if (folder == AT_FDCWD || name[0] == '/') return removeName(name, call);
  char path[PATH_MAX];
  auto link = kj::str("/proc/self/fd/", folder);
  auto length = ::readlink(link.cStr(), path, sizeof(path));
  if (length < 0) return -1;
  return removeName((std::string(path, length) + "/" + name).c_str(), call);
}

int mkdir(const char* path, mode_t mode) noexcept {
  auto disk = diskOf(path);
  if (disk == nullptr) return ::syscall(SYS_mkdir, path, mode);
  if (disk->find(path) == nullptr) {
    if (int error = disk->begin(path)) return failedWith(error);
  }
  int result = ::syscall(SYS_mkdir, path, mode);
  if (result == 0) {
    std::string name;
    auto node = disk->newNode(true);
    disk->parentOf(path, name)->change({{name, node}});
  }
  return result;
}

int rename(const char* from, const char* to) noexcept {
  auto disk = diskOf(from);
  if (disk == nullptr) return ::syscall(SYS_rename, from, to);
  if (int error = disk->begin(to)) return failedWith(error);
  auto replaced = disk->find(to);
  if (replaced != nullptr && !replaced->isFolder) {
    replaced->last = replaced->withoutMissing(contentOf(to));
  }
  auto node = disk->find(from);
  int result = ::syscall(SYS_rename, from, to);
  if (result != 0) return result;
  std::string fromName, toName;
  auto fromFolder = disk->parentOf(from, fromName), toFolder = disk->parentOf(to, toName);
  if (fromFolder == toFolder) {
    toFolder->change({{fromName, nullptr}, {toName, node}});
  } else {
    toFolder->change({{toName, node}});
    fromFolder->change({{fromName, nullptr}});
  }
  for (auto& [fd, file]: disk->open) {
    if (file.node == node) file.path = to;
  }
  return 0;
}

}  // extern "C"
