// io/paths.h: paths, files and folders of this machine.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <type_traits>

#include "configs/language/failure.h"

namespace io {

// Returns the part of `path` after its last `/`.
kj::StringPtr baseName(kj::StringPtr path);
// Returns the part of `path` before its last `/`, or "" if there is none.
kj::String folderName(kj::StringPtr path);

// Returns `path` without a leading `./`.
kj::StringPtr withoutDot(kj::StringPtr path);

// Returns `path` without the slashes at its end. "/" stays.
kj::String withoutSlash(kj::StringPtr path);

// The kind of thing at a path. Links are followed.
enum class PathKind { NOTHING, FILE, FOLDER };
PathKind pathKind(kj::StringPtr path);

// Returns what is at `path` if it is neither a file nor a folder: "a link to nothing", "a pipe".
// Null if it is a file or a folder, if there is nothing, or if that cannot be found out.
kj::Maybe<kj::String> whyNeither(kj::StringPtr path);

// Returns why the kind of thing at `path` cannot be determined: "Permission denied". Null if it can
// be determined, or if there is nothing at `path`.
kj::Maybe<kj::String> whyUnreadable(kj::StringPtr path);

// Whether `path`, at which there may be nothing yet, is `folder` or is below it. Links are
// followed.
bool isBelow(kj::StringPtr path, kj::StringPtr folder);

// Returns the beginning of the relative path `path` up to its first hidden name, or null. A hidden
// name begins with a dot (but is not `.` or `..`), or is the folder `__MACOSX` that macOS adds to
// archives.
kj::Maybe<kj::String> hiddenPartOf(kj::StringPtr path);

// Everything below a folder, as relative paths. Each list is sorted.
struct Below {
  kj::Array<kj::String> files;  // regular files; links are followed
  // Neither files nor folders, with their kind: "a/x.jpg (a pipe)". Includes a link to a folder
  // that contains the link.
  kj::Array<kj::String> notRegular;
  // Folders that cannot be listed or searched, and links into such folders, with the reason: "a/b
  // (Permission denied)".
  kj::Array<kj::String> unreadable;
  kj::Array<kj::String> hidden;  // files and folders, but not the contents of the folders
  kj::Array<kj::String> empty;   // folders with nothing in them
};

// Lists everything below `folder`. Throws if `folder` itself cannot be listed or searched.
Below allBelow(kj::StringPtr folder);

// Returns a file's whole content. Throws if it cannot be read. Throws before it allocates memory if
// the file is larger than `bytesMax`.
kj::Array<kj::byte> readFile(kj::StringPtr path, size_t bytesMax);

// Writes all of `bytes` to the open file `fd`. The text of an exception begins with a verb.
void writeTo(int fd, kj::ArrayPtr<const kj::byte> bytes);
// Returns when all bytes of the open file `fd` are on disk. The text of an exception begins with a
// verb.
void syncToDisk(int fd);

// Writes the file at `path`, and replaces its content. Throws with the cause.
void writeText(kj::StringPtr path, kj::StringPtr text);
// Does the same, and returns when the content is on disk.
void writeSynced(kj::StringPtr path, kj::StringPtr text);

// Renames the file or folder `from` to `to`, and returns when the new name is on disk. A crash
// leaves the old name or the new one. Throws with the cause.
void moveIntoPlace(kj::StringPtr from, kj::StringPtr to);

// Returns `text` with `to` in place of each `from`, which is not empty.
kj::String replaced(kj::StringPtr text, kj::StringPtr from, kj::StringPtr to);

// Calls `func` and returns its result, if it has one. The text of its exceptions must begin with a
// verb ("cannot be opened: …"). They are thrown again with `subject` in front.
template <typename Func>
auto about(kj::StringPtr subject, Func&& func) {
  auto fail = [&](const kj::Exception& e) { configs::fail(subject, " ", e.getDescription()); };
  if constexpr (std::is_void_v<decltype(func())>) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { func(); })) fail(*e);
  } else {
    kj::Maybe<decltype(func())> result;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { result = func(); })) fail(*e);
    return kj::mv(KJ_ASSERT_NONNULL(result));
  }
}

// Calls `func`. Its exceptions are thrown again with `name` in place of each `path`. For a
// temporary path that the user does not know.
template <typename Func>
void naming(kj::StringPtr path, kj::StringPtr name, Func&& func) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(kj::fwd<Func>(func))) {
    kj::throwFatalException(kj::Exception(
        e->getType(), e->getFile(), e->getLine(), replaced(e->getDescription(), path, name)));
  }
}

// The same as readFile(), but the text of exceptions begins with a verb and has no path.
kj::Array<kj::byte> contentOf(kj::StringPtr path, size_t bytesMax);

}  // namespace io
