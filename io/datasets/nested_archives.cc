#include "io/datasets/nested_archives.h"

#include <kj/debug.h>
#include <kj/io.h>
#include <sys/mman.h>

#include "configs/language/failure.h"
#include "io/paths.h"

namespace io {

namespace {

class NestedMembers final: public Members {
public:
  explicit NestedMembers(kj::StringPtr path)
      : path(kj::str(path)),
        isFolder(pathKind(path) == PathKind::FOLDER),
        outer(Members::open(path)) {}

  kj::Maybe<kj::StringPtr> next() override {
    for (;;) {
      KJ_IF_MAYBE(name, nextInside()) return *name;
      KJ_IF_MAYBE(found, outer->next()) {
        if (!isNamedAsArchive(*found)) return *found;
        enter(*found);
      } else {
        if (!ended) all.add(*outer, "");
        ended = true;
        return nullptr;
      }
    }
  }

  kj::Maybe<uint32_t> label() const override {
    KJ_IF_MAYBE(members, inner) return (*members)->label();
    return outer->label();
  }
  kj::Array<kj::byte> read(size_t bytesMax) override {
    KJ_IF_MAYBE(members, inner) return (*members)->read(bytesMax);
    return outer->read(bytesMax);
  }

  const LeftOut& notRegular() const override { return all.notRegular; }
  const LeftOut& hidden() const override { return all.hidden; }
  const LeftOut& unreadable() const override { return all.unreadable; }
  const LeftOut& empty() const override { return all.empty; }
  uint64_t done() const override { return outer->done(); }
  uint64_t total() const override { return outer->total(); }

private:
  // Returns the next file of the archive that is open, or null if there is none.
  kj::Maybe<kj::StringPtr> nextInside() {
    KJ_IF_MAYBE(members, inner) {
      kj::Maybe<kj::StringPtr> found;
      naming(opened, archive, [&]() { found = (*members)->next(); });
      KJ_IF_MAYBE(inside, found) {
        name = kj::str(folder, *inside);
        return kj::StringPtr(name);
      }
      all.add(**members, folder);
      inner = nullptr;
      memory = nullptr;
    }
    return nullptr;
  }

  void enter(kj::StringPtr found) {
    folder = kj::str(withoutArchiveEnding(found), "/");
    if (isFolder) {
      archive = kj::str(path, "/", found);
      opened = kj::str(archive);
    } else {
      archive = kj::str(found, " of ", path);
      auto bytes = about(archive, [&]() { return outer->read(NESTED_BYTES_MAX); });
      int fd;
      KJ_SYSCALL(fd = ::memfd_create("archive", MFD_CLOEXEC));
      memory = kj::AutoCloseFd(fd);
      about(archive, [&]() { writeTo(fd, bytes); });
      opened = kj::str("/proc/self/fd/", fd);
    }
    naming(opened, archive, [&]() { inner = Members::open(opened); });
  }

  // Skipped entries, of the outer folder and of the archives in it.
  struct Skipped {
    LeftOut notRegular, hidden, unreadable, empty;

    void add(const Members& members, kj::StringPtr folder) {
      notRegular.addAll(members.notRegular(), folder);
      hidden.addAll(members.hidden(), folder);
      unreadable.addAll(members.unreadable(), folder);
      empty.addAll(members.empty(), folder);
    }
  };

  const kj::String path;
  const bool isFolder;
  kj::Own<Members> outer;
  bool ended = false;
  Skipped all;

  // Of the archive that is open, if there is one.
  kj::Maybe<kj::Own<Members>> inner;
  kj::Maybe<kj::AutoCloseFd> memory;
  kj::String archive;  // its name in messages
  kj::String opened;   // the path by which it was opened
  kj::String folder;   // the folder that it stands for
  kj::String name;     // of the file that next() returned
};

}  // namespace

kj::Own<Members> openNested(kj::StringPtr path) {
  return kj::heap<NestedMembers>(path);
}

}  // namespace io
