// Getters of paths.
#include <errno.h>
#include <fcntl.h>
#include <kj/common.h>
#include <kj/filesystem.h>
#include <kj/io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "configs/language/reader.h"

namespace configs {

namespace {

// Whether `text` is an address such as `http://…`, which is not relative to any folder.
bool isAddress(kj::StringPtr text) {
  KJ_IF_MAYBE(colon, text.findFirst(':')) return text.slice(*colon).startsWith("://");
  return false;
}

kj::String currentFolder() {
  return kj::newDiskFilesystem()->getCurrentPath().toString(true);
}

bool isLink(kj::StringPtr path) {
  struct stat about;
  return ::lstat(path.cStr(), &about) == 0 && S_ISLNK(about.st_mode);
}

// Returns the absolute path of `relative` as seen from `folder`. A `..` removes the name before it,
// unless that name is a symbolic link. Only the system can resolve a `..` after a link.
kj::String join(kj::StringPtr folder, kj::StringPtr relative) {
  auto path = kj::str(folder == "/" ? ""_kj : folder);
  size_t begin = 0;
  for (size_t end = 0; end <= relative.size(); ++end) {
    if (end < relative.size() && relative[end] != '/') continue;
    auto part = kj::heapString(relative.slice(begin, end));
    begin = end + 1;
    if (part == "" || part == ".") continue;
    auto slash = path.findLast('/').orDefault(0);
    if (part == ".." && !path.endsWith("/..") && !isLink(path)) {
      path = kj::heapString(path.slice(0, slash));
    } else {
      path = kj::str(path, "/", part);
    }
  }
  return path.size() == 0 ? kj::str("/") : kj::mv(path);
}

// Returns the path of a symbolic link's target. Any other path is returned unchanged.
kj::String withoutLink(kj::String path) {
  size_t size = path.size();
  while (size > 1 && path[size - 1] == '/') --size;
  auto own = kj::heapString(path.slice(0, size));
  if (!isLink(own)) return path;
  auto real = ::realpath(own.cStr(), nullptr);
  if (real == nullptr) return path;
  KJ_DEFER(::free(real));
  return kj::str(real);
}

// Identifies the file or folder at a path, independently of its name.
struct FileIdentity {
  dev_t device;
  ino_t number;
};
kj::Maybe<FileIdentity> identityOf(kj::StringPtr path) {
  struct stat about;
  if (::stat(path.cStr(), &about) != 0) return nullptr;
  return FileIdentity{about.st_dev, about.st_ino};
}

}  // namespace

kj::Maybe<kj::String> Reader::maybePath(kj::StringPtr key, kj::StringPtr doc, bool followsLink) {
  describe(key, "path", "none", doc);
  KJ_IF_MAYBE(value, find(key)) {
    auto given = textOf(key, *value);
    // The error has been reported already.
    if (!value->content.is<kj::String>()) return nullptr;
    auto result = pathAt(key, kj::mv(given), value->span);
    if (followsLink) result = withoutLink(kj::mv(result));
    keep(key, newValue(kj::str(result)));
    return kj::mv(result);
  }
  return nullptr;
}

kj::String Reader::pathAt(kj::StringPtr key, kj::String given, Span span) {
  if (given.size() == 0 || given.startsWith("/") || isAddress(given)) return given;
  bool inFile = span.source != nullptr && span.source->folder.size() > 0;
  if (!inFile) return join(currentFolder(), given);
  auto result = join(span.source->folder, given);
  refuseIfElsewhere(key, given, result, span);
  return result;
}

kj::Array<Reader::ListedText> Reader::textsOrLines(kj::StringPtr key, kj::StringPtr doc) {
  describe(key, "list of strings, or path of a file with one per line", "`[]`", doc);
  kj::Vector<ListedText> result;
  KJ_IF_MAYBE(value, find(key)) {
    if (value->content.is<kj::String>()) {
      result = linesOfFile(key, value->content.get<kj::String>(), value->span);
    } else {
      eachOf(key, *value, "[\"…\"]", [&](kj::StringPtr name, const Value& element, List&) {
        if (!element.content.is<kj::String>()) return void(textOf(name, element));
        result.add(ListedText{kj::str(element.content.get<kj::String>()), {}, element.span});
      });
    }
    List resolved;
    for (auto& each: result) resolved.add(newValue(kj::str(each.text)));
    keep(key, newValue(kj::mv(resolved)));
  }
  return result.releaseAsArray();
}

kj::Vector<Reader::ListedText> Reader::linesOfFile(
    kj::StringPtr key, kj::StringPtr given, Span span) {
  constexpr off_t BYTES_MAX = 1 << 20;
  kj::Vector<ListedText> lines;
  size_t before = sink.diagnostics.count();
  auto path = pathAt(key, kj::str(given), span);
  if (sink.diagnostics.count() > before) return lines;
  auto refuse = [&](kj::StringPtr why) {
    sink.diagnostics.error(span, kj::str("cannot read `", given, "`: ", why),
        kj::str("write the path of a file, or the list itself: ", key, " = [\"…\"]"));
  };
  kj::AutoCloseFd fd(::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (fd == nullptr || ::fstat(fd, &about) != 0) {
    refuse(strerror(errno));
    return lines;
  }
  if (!S_ISREG(about.st_mode) || about.st_size > BYTES_MAX) {
    refuse(S_ISREG(about.st_mode) ? "it is larger than 1 MiB" : "it is not a file");
    return lines;
  }
  auto text = kj::FdInputStream(fd.get()).readAllText();
  uint number = 0;
  for (size_t begin = 0; begin < text.size();) {
    auto end = text.slice(begin).findFirst('\n').orDefault(text.size() - begin) + begin;
    auto line = kj::heapString(text.slice(begin, end));
    begin = end + 1;
    number++;
    auto last = line.findFirst('#').orDefault(line.size());
    auto isSpace = [&](size_t i) { return line[i] == ' ' || line[i] == '\t' || line[i] == '\r'; };
    size_t first = 0;
    while (first < last && isSpace(first)) first++;
    while (last > first && isSpace(last - 1)) last--;
    if (first == last) continue;
    lines.add(ListedText{
        kj::heapString(line.slice(first, last)), kj::str(given, ":", number, ": "), span});
  }
  return lines;
}

void Reader::refuseIfElsewhere(
    kj::StringPtr key, kj::StringPtr given, kj::StringPtr meant, Span span) {
  auto before = join(currentFolder(), given);
  auto there = identityOf(meant);
  KJ_IF_MAYBE(other, identityOf(before)) {
    KJ_IF_MAYBE(place, there) {
      if (place->device == other->device && place->number == other->number) return;
      sink.diagnostics.error(span,
          kj::str("`", given, "` exists twice: as ", meant,
              ", seen from the folder of this file, and as ", before,
              ", seen from the current folder"),
          kj::str("a relative `", key,
              "` starts at the folder of the file that contains it, but started at the current "
              "folder in earlier versions. Write the absolute path of the one that you mean"));
    } else {
      sink.diagnostics.error(span,
          kj::str("there is nothing at ", meant, ", but there is something at ", before),
          kj::str("a relative `", key,
              "` starts at the folder of the file that contains it, not at the current folder. "
              "Write `",
              key, " = \"", before, "\"`, or --set ", pathOf(key), "=", given));
    }
  }
}

}  // namespace configs
