// io/paths.h: paths, files and folders of this machine.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/failure.h"

namespace io {

// `path` behind its last `/`.
kj::StringPtr baseName(kj::StringPtr path);
// `path` before its last `/`; "" if there is none.
kj::String folderName(kj::StringPtr path);

// `path` without the `./` that it may begin with.
kj::StringPtr withoutDot(kj::StringPtr path);

// `path` without the slashes that it may end in; "/" stays.
kj::String withoutSlash(kj::StringPtr path);

// What stands at `path`; links are followed.
enum class PathKind { NOTHING, FILE, FOLDER };
PathKind pathKind(kj::StringPtr path);

// What stands at `path` in place of a file or a folder: "a link to nothing", "a pipe". Null if it
// is a file or a folder, or nothing at all, or if nobody can tell.
kj::Maybe<kj::String> whyNeither(kj::StringPtr path);

// Why nobody can tell what stands at `path`: "Permission denied". Null if anybody can, also if
// there is nothing.
kj::Maybe<kj::String> whyUnreadable(kj::StringPtr path);

// The beginning of the relative path `path` up to its first hidden name: one that begins with a dot
// (`.` and `..` aside), or the folder `__MACOSX` that macOS adds to archives. Null if it has none.
kj::Maybe<kj::String> hiddenPartOf(kj::StringPtr path);

// What lies below a folder, by paths from there, each list sorted.
struct Below {
  kj::Array<kj::String> files;  // regular ones; links are followed
  // Neither files nor folders, with what they are: "a/x.jpg (a pipe)". Among them is a link to a
  // folder that the link lies in.
  kj::Array<kj::String> notRegular;
  // Folders that cannot be listed or searched, and links into such, with the reason: "a/b
  // (Permission denied)".
  kj::Array<kj::String> unreadable;
  kj::Array<kj::String> hidden;  // files and folders, without what is in these
};

// Throws if `folder` itself cannot be listed or searched.
Below allBelow(kj::StringPtr folder);

// A file's whole content. Throws if it cannot be read, or is larger than `bytesMax`, before taking
// memory for it.
kj::Array<kj::byte> readFile(kj::StringPtr path, size_t bytesMax);

// Writes all of `bytes` to the open file `fd`. What is thrown begins with a verb.
void writeTo(int fd, kj::ArrayPtr<const kj::byte> bytes);

// Renames the file or folder `from` to `to`, and returns when the disk knows of it: a crash leaves
// the one or the other. Throws with the cause.
void moveIntoPlace(kj::StringPtr from, kj::StringPtr to);

// `text` with `to` in place of each `from`, which is not empty.
kj::String replaced(kj::StringPtr text, kj::StringPtr from, kj::StringPtr to);

// Calls `func` and returns what it returns. What it throws must begin with a verb ("cannot be
// opened: …") and is thrown again behind `subject`.
template <typename Func>
auto about(kj::StringPtr subject, Func&& func) {
  kj::Maybe<decltype(func())> result;
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { result = func(); })) {
    configs::fail(subject, " ", e->getDescription());
  }
  return kj::mv(KJ_ASSERT_NONNULL(result));
}

// Calls `func`. What it throws is thrown again with `name` in place of each `path`: a temporary
// path that the user has not named.
template <typename Func>
void naming(kj::StringPtr path, kj::StringPtr name, Func&& func) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(kj::fwd<Func>(func))) {
    kj::throwFatalException(kj::Exception(
        e->getType(), e->getFile(), e->getLine(), replaced(e->getDescription(), path, name)));
  }
}

// readFile() without a path: throws what begins with a verb.
kj::Array<kj::byte> contentOf(kj::StringPtr path, size_t bytesMax);

}  // namespace io
