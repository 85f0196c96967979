// Tests which folder a relative path in an experiment file starts from.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "configs/language/reader.h"

namespace configs {
namespace {

// A folder with files, and a current folder below it.
class Folders {
public:
  Folders() {
    auto pattern = kj::str(::getenv("TEST_TMPDIR"), "/paths-XXXXXX");
    KJ_REQUIRE(::mkdtemp(pattern.begin()) != nullptr, pattern);
    path = kj::mv(pattern);
    write("current/.keep", "");
    KJ_SYSCALL(::chdir(at("current").cStr()));
    KJ_SYSCALL(::setenv("PWD", at("current").cStr(), 1));
  }

  kj::String path;
  kj::String at(kj::StringPtr name) const { return kj::str(path, "/", name); }

  void write(kj::StringPtr name, kj::StringPtr text) {
    std::filesystem::path path(at(name).cStr());
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text.cStr();
  }
  void link(kj::StringPtr name, kj::StringPtr to) {
    KJ_SYSCALL(::symlink(to.cStr(), at(name).cStr()));
  }
};

// The value of `place` in the file at `path`, and the errors.
struct Read {
  kj::Own<Document> document;
  kj::Maybe<kj::String> place;
  kj::String resolved;
  kj::String errors;

  explicit Read(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides = nullptr) {
    auto filesystem = kj::newDiskFilesystem();
    Diagnostics diagnostics;
    document =
        load(filesystem->getRoot(), path, overrides, diagnostics, filesystem->getCurrentPath());
    Reading reading{diagnostics, {}};
    readDocument(*document, reading, [&](Reader& reader) {
      place = reader.maybePath("place", "Where it is.");
      return 0;
    });
    resolved = print(reading.resolved);
    errors = diagnostics.format(path);
  }

  kj::StringPtr is() const { return KJ_REQUIRE_NONNULL(place); }
};

TEST_CASE("Reader: a relative path starts from the folder of its file, and is kept absolute") {
  Folders folders;
  folders.write("files/x.toml", "place = \"photos\"\n");
  folders.write("files/photos", "");
  auto path = folders.at("files/x.toml");
  for (auto name: {kj::StringPtr(path), "../files/x.toml"_kj}) {
    Read read(name);
    CHECK(read.errors == "");
    CHECK(read.is() == folders.at("files/photos"));
    CHECK(read.resolved == kj::str("place = \"", folders.at("files/photos"), "\"\n"));
  }
}

TEST_CASE("Reader: a path in an extended file starts from the folder of that file") {
  Folders folders;
  folders.write("files/below/base.toml", "place = \"../photos\"\n");
  folders.write("files/x.toml", "extends = \"below/base.toml\"\n");
  CHECK(Read(folders.at("files/x.toml")).is() == folders.at("files/photos"));
}

TEST_CASE(
    "Reader: `..` after a link, in extends or in the file's path, leads above the link's target") {
  Folders folders;
  folders.write("far/base.toml", "place = \"photos\"\n");
  folders.write("far/configs/x.toml", "extends = \"../base.toml\"\n");
  folders.write("near/base.toml", "place = \"wrong\"\n");
  folders.link("near/configs", "../far/configs");
  CHECK(Read(folders.at("near/configs/x.toml")).is() == folders.at("far/photos"));
  CHECK(Read(folders.at("near/configs/../base.toml")).is() == folders.at("far/photos"));
  folders.write("near/x.toml", "extends = \"gone/../base.toml\"\n");
  CHECK(::strstr(Read(folders.at("near/x.toml")).errors.cStr(), "there is no file `") != nullptr);
}

TEST_CASE(
    "Reader: a path in a --set starts from the current folder, like every path on a command line") {
  Folders folders;
  folders.write("files/x.toml", "place = \"photos\"\n");
  folders.write("files/photos", "");
  Read read(folders.at("files/x.toml"), kj::arr("place=./photos"_kj));
  CHECK(read.errors == "");
  CHECK(read.is() == folders.at("current/photos"));
}

TEST_CASE("Reader: a path that is not a string is one error, and gives no path") {
  Folders folders;
  folders.write("x.toml", "place = 3\n");
  Read read(folders.at("x.toml"));
  CHECK(read.place == nullptr);
  CHECK(strstr(read.errors.cStr(), "`place` must be a string, not an integer") != nullptr);
}

TEST_CASE("Reader: absolute paths, addresses and empty texts stay unchanged") {
  Folders folders;
  for (auto text: {"/a/../b", "http://host/a", "file:///a", ""}) {
    folders.write("x.toml", kj::str("place = \"", text, "\"\n"));
    Read read(folders.at("x.toml"));
    CHECK(read.errors == "");
    CHECK(read.is() == text);
  }
}

TEST_CASE(
    "Reader: `..` after a symbolic link stays in the path, because only the system knows the "
    "target") {
  Folders folders;
  folders.write("elsewhere/files/x.toml", "place = \"../photos\"\n");
  folders.link("files", folders.at("elsewhere/files"));
  CHECK(Read(folders.at("files/x.toml")).is() == folders.at("files/../photos"));
}

TEST_CASE("Reader: a path that exists only below the current folder is refused") {
  Folders folders;
  folders.write("files/x.toml", "place = \"photos\"\n");
  folders.write("current/photos", "");
  CHECK(
      Read(folders.at("files/x.toml")).errors ==
      kj::str(folders.at("files/x.toml"), ":1:9: error: there is nothing at ",
          folders.at("files/photos"), ", but there is something at ", folders.at("current/photos"),
          "\n"
          "  1 | place = \"photos\"\n"
          "    |         ^^^^^^^^\n"
          "  help: a relative `place` starts at the folder of the file that contains it, not at "
          "the current folder. Write `place = \"",
          folders.at("current/photos"), "\"`, or --set place=photos\n1 error in ",
          folders.at("files/x.toml"), "; nothing was started.\n"));
}

TEST_CASE("Reader: a path that leads to different files from both folders is refused") {
  Folders folders;
  folders.write("files/x.toml", "place = \"photos\"\n");
  folders.write("files/photos", "");
  folders.write("current/photos", "");
  auto errors = Read(folders.at("files/x.toml")).errors;
  CHECK(errors.startsWith(
      kj::str(folders.at("files/x.toml"), ":1:9: error: `photos` exists twice: as ",
          folders.at("files/photos"), ", seen from the folder of this file, and as ",
          folders.at("current/photos"), ", seen from the current folder\n")));

  KJ_SYSCALL(::unlink(folders.at("current/photos").cStr()));
  folders.link("current/photos", "../files/photos");
  CHECK(Read(folders.at("files/x.toml")).errors == "");
}

// What textsOrLines() returns for a file x.toml with this value, each with its place.
kj::String linesIn(Folders& folders, kj::StringPtr value) {
  folders.write("x.toml", kj::str("names = ", value));
  auto filesystem = kj::newDiskFilesystem();
  Diagnostics diagnostics;
  auto path = folders.at("x.toml");
  auto document =
      load(filesystem->getRoot(), path, nullptr, diagnostics, filesystem->getCurrentPath());
  Reading reading{diagnostics, {}};
  return readDocument(*document, reading, [&](Reader& reader) {
    auto lines = reader.textsOrLines("names", "Names.");
    auto shown = KJ_MAP(line, lines) {
      return kj::str(line.place, line.text, ";");
    };
    return kj::str(kj::strArray(shown, ""), print(reading.resolved), diagnostics.format("x"));
  });
}

TEST_CASE("Reader: a list of strings may come from a file with one string per line") {
  Folders folders;
  folders.write("names.txt", "# all\n\n one two # three\r\nfour");
  CHECK(linesIn(folders, "[\"one two\", \"four\"]") ==
        "one two;four;names = [\"one two\", \"four\"]\n");
  CHECK(linesIn(folders, "\"names.txt\"") ==
        "names.txt:3: one two;names.txt:4: four;names = [\"one two\", \"four\"]\n");
}

TEST_CASE("Reader: a file of strings that cannot be read is an error at its path") {
  Folders folders;
  for (auto value: {"\"nothing.txt\"", "\"/\"", "\"/dev/zero\"", "\"\""}) {
    auto found = linesIn(folders, value);
    CAPTURE(found.cStr());
    CHECK(strstr(found.cStr(), ":1:9: error: cannot read `") != nullptr);
  }
}

}  // namespace
}  // namespace configs
