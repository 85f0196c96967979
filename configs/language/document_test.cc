#include "configs/language/document.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace configs {
namespace {

doctest::String shown(kj::StringPtr text) {
  return text.cStr();
}

// The error lines of a text that is not TOML.
doctest::String errorsOf(kj::StringPtr text) {
  Diagnostics diagnostics;
  auto document = parse("x.toml", text, diagnostics);
  CHECK(document->complete == (diagnostics.count() == 0));
  return shown(diagnostics.format("x.toml"));
}

// A folder in memory, and one file of it, which is read.
struct Loaded {
  kj::Own<const kj::Directory> folder = kj::newInMemoryDirectory(kj::nullClock());
  Diagnostics diagnostics;
  kj::Own<Document> document;

  Loaded& write(kj::StringPtr path, kj::StringPtr text) {
    folder->openFile(kj::Path::parse(path), kj::WriteMode::CREATE | kj::WriteMode::CREATE_PARENT)
        ->writeAll(text);
    return *this;
  }
  Loaded& read(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides = nullptr) {
    document = load(*folder, path, overrides, diagnostics);
    return *this;
  }
  doctest::String errors() { return shown(diagnostics.format(document->file)); }
  doctest::String printed() { return shown(print(document->root)); }
};

kj::String placeOf(const Table& table, kj::StringPtr key) {
  return KJ_ASSERT_NONNULL(table.find(key)).value->span.toString();
}
const Table& sectionOf(const Table& table, kj::StringPtr key) {
  return KJ_ASSERT_NONNULL(table.find(key)).value->content.get<Table>();
}

TEST_CASE("parse: keeps the order of the file, and the places of keys and values") {
  Diagnostics diagnostics;
  auto document = parse("x.toml",
      "z = \"ü€\" # c\n"
      "[train.optimizer]\n"
      "b = 0x10\n"
      "a = { q = [1, 2.5,\n true] }\n"
      "[[layers]]\n"
      "kind = 'relu'\n"
      "[[layers]]\n"
      "[data]\n",
      diagnostics);
  CHECK(diagnostics.count() == 0);
  auto keys = KJ_MAP(entry, document->root.entries) {
    return kj::str(entry.key);
  };
  CHECK(kj::strArray(keys, " ") == "z train layers data");
  auto& z = document->root.entries[0];
  CHECK(z.value->content.get<kj::String>() == "ü€");
  CHECK(z.value->span.toString() == "x.toml:1:5");
  CHECK(z.value->span.endColumn == 9);
  CHECK(z.keySpan.column == 1);

  auto& optimizer = sectionOf(sectionOf(document->root, "train"), "optimizer");
  CHECK(optimizer.span.toString() == "x.toml:2:1");
  CHECK(optimizer.span.endColumn == 18);
  CHECK(optimizer.entries[0].key == "b");
  CHECK(optimizer.entries[0].value->content.get<int64_t>() == 16);
  auto& list = sectionOf(optimizer, "a").entries[0].value->content.get<List>();
  REQUIRE(list.size() == 3);
  CHECK(list[1]->content.get<double>() == 2.5);
  CHECK(list[2]->content.get<bool>());
  CHECK(list[2]->span.toString() == "x.toml:5:2");

  auto& layers = document->root.entries[2].value->content.get<List>();
  REQUIRE(layers.size() == 2);
  CHECK(layers[1]->content.get<Table>().span.toString() == "x.toml:8:1");
}

TEST_CASE("parse: shows a syntax error at the word that is wrong") {
  CHECK(errorsOf("a = 1\ndataset = mnist # c\n") == R"(x.toml:2:11: error: `mnist` is not a value
  2 | dataset = mnist # c
    |           ^^^^^
  help: write a string in quotes: "mnist". The booleans are `true` and `false`
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("a = TRUE\n") == R"(x.toml:1:5: error: `TRUE` is not a value
  1 | a = TRUE
    |     ^^^^
  help: write a string in quotes: "TRUE". The booleans are `true` and `false`
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("ä = \"abc\n") == R"(x.toml:1:1: error: this is not TOML: expected keys, )"
                                   R"(tables, whitespace or comments, saw 'ä'
  1 | ä = "abc
    | ^
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("a = [\"ä\", 0.1.2]\n") ==
        R"(x.toml:1:11: error: this is not TOML: expected decimal digit or exponent, saw '.'
  1 | a = ["ä", 0.1.2]
    |           ^^^^^
1 error in x.toml; nothing was started.
)");
  CHECK(
      errorsOf("a = \"abc\nb = 1\n") ==
      R"(x.toml:1:6: error: the string is not closed on this line (or contains a control character)
  1 | a = "abc
    |      ^^^
  help: close it with the quote that it began with
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("[data\nb = 1\n") == R"(x.toml:1:2: error: this is not TOML: expected ']', saw '\n'
  1 | [data
    |  ^^^^
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("a = [1, 2\n") == R"(x.toml:1:9: error: the text ends in the middle of an array
  1 | a = [1, 2
    |         ^
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("a =\n") == R"(x.toml:1:4: error: a value is missing here
  1 | a =
    |    ^
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("parse: refuses a repeated key or header at its second place") {
  CHECK(errorsOf("\nmomentum = 0.9\n\n  momentum   = 0.5\n") ==
        R"(x.toml:4:3: error: `momentum` is given twice
  4 |   momentum   = 0.5
    |   ^^^^^^^^
  help: remove one of the two
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("[a]\nb = 1\n[c]\n[a] # again\n") == R"(x.toml:4:1: error: `[a]` is given twice
  4 | [a] # again
    | ^^^
  help: remove one of the two
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("ü = { \"ä\" = 1, \"ä\" = 2 }\n") != "");
  CHECK(errorsOf("x = { kind = \"ä\", kind = \"b\" }\n") ==
        R"(x.toml:1:19: error: `kind` is given twice
  1 | x = { kind = "ä", kind = "b" }
    |                   ^^^^
  help: remove one of the two
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("parse: refuses an addition to a table in braces, or to a value, at its own line") {
  auto expected = R"(x.toml:3:1: error: `[data.augment]` adds to `data`, which is given further up
  3 | [data.augment] # more
    | ^^^^^^^^^^^^^^
  help: write `[data]` as a section, or put `augment` into the braces
1 error in x.toml; nothing was started.
)";
  CHECK(errorsOf("data = { a = 1 }\n\n[data.augment] # more\n[c]\n") == expected);
  CHECK(errorsOf("data = { a = 1 }\n\n[data.augment] # more") == expected);
  CHECK(errorsOf("a.b = {}\n[[ a.b . c ]]\n[d]\n") ==
        R"(x.toml:2:1: error: `[[ a.b . c ]]` adds to `a.b`, which is given further up
  2 | [[ a.b . c ]]
    | ^^^^^^^^^^^^^
  help: write `[a.b]` as a section, or put `c` into the braces
1 error in x.toml; nothing was started.
)");

  CHECK(errorsOf("[x]\ndata = { a = 1 }\ndata.b = 2\nc = 3\n") ==
        R"(x.toml:3:1: error: `data.b` adds to `data`, which is given further up
  3 | data.b = 2
    | ^^^^^^
  help: put `b` where `data` is given
1 error in x.toml; nothing was started.
)");

  CHECK(
      errorsOf("[data]\naugment = 3\n[data.augment.more]\nb = 4\n") ==
      R"(x.toml:3:1: error: `[data.augment.more]` adds to `data.augment`, which is given further up
  3 | [data.augment.more]
    | ^^^^^^^^^^^^^^^^^^^
  help: remove one of the two
1 error in x.toml; nothing was started.
)");
  CHECK(errorsOf("[data]\naugment = 3\n[data.augment]\nb = 4\n") ==
        R"(x.toml:3:1: error: `[data.augment]` is given twice
  3 | [data.augment]
    | ^^^^^^^^^^^^^^
  help: remove one of the two
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("parse: says what to do about a table in braces that continues on the next line") {
  CHECK(errorsOf("data = { a = 1,\n  b = 2 }\n") ==
        R"(x.toml:1:16: error: a table in braces ends on the line that it begins on
  1 | data = { a = 1,
    |                ^
  help: write all of it on one line, or write it as a section
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("parse: odd texts are errors, never crashes") {
  for (auto text: {"\xff", "a = \"\x01\"", "=", "[", "[[", "]", "a", "a.", "{", "\"", "a = \"\\",
           "a = [[[[[[", "a = {b = {c = ", "\r\r\r", "a = '''", "a\xc3", "= = =", "a = 1e999"}) {
    CAPTURE(text);
    errorsOf(text);
  }
  CHECK(errorsOf("a = \"\xff\"\n") ==
        "x.toml:1:5: error: this is not UTF-8 text\n"
        "  1 | a = \"\xff\"\n"
        "    |     ^\n"
        "1 error in x.toml; nothing was started.\n");
  CHECK(errorsOf("") == "");
  CHECK(errorsOf("\xef\xbb\xbf"
                 "a = 1") == "");
}

TEST_CASE("load: lays a file over the one that it extends, key by key, and keeps places") {
  Loaded loaded;
  loaded.write("configs/base.toml", "name = 'base'\n[data]\nsize = 1\nwords = [1, 2]\n")
      .write("configs/more/middle.toml", "extends = '../base.toml'\n[data]\nsize = 2\n[log]\n")
      .write("configs/x.toml", "extends = 'more/middle.toml'\nname = 'x'\n[data]\nwords = [3]\n")
      .read("configs/x.toml");
  CHECK(loaded.errors() == "");
  CHECK(loaded.document->complete);
  CHECK(loaded.document->file == "configs/x.toml");
  CHECK(loaded.printed() == R"(name = "x"

[data]
size = 2
words = [3]

[log]
)");
  auto& root = loaded.document->root;
  auto& data = sectionOf(root, "data");
  CHECK(shown(placeOf(root, "name")) == "configs/x.toml:2:8");
  CHECK(shown(data.span.toString()) == "configs/x.toml:3:1");
  CHECK(shown(placeOf(data, "size")) == "configs/more/middle.toml:3:8");
  CHECK(shown(placeOf(data, "words")) == "configs/x.toml:4:9");
  CHECK(shown(sectionOf(root, "log").span.toString()) == "configs/more/middle.toml:4:1");
}

TEST_CASE("load: a table with another kind replaces the one below, unless a dotted key sets it") {
  auto over = [](kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> overrides) {
    Loaded loaded;
    loaded
        .write(
            "base.toml", "[train]\nepochs = 1\n[train.optimizer]\nkind = 'sgd'\nmomentum = 0.9\n")
        .write("x.toml", kj::str("extends = 'base.toml'\n", file))
        .read("x.toml", overrides);
    CHECK(loaded.errors() == "");
    return loaded.printed();
  };
  auto with = [](kj::StringPtr optimizer) {
    return shown(kj::str("[train]\nepochs = 1\noptimizer = { ", optimizer, " }\n"));
  };
  auto file = [&](kj::StringPtr text) { return over(text, nullptr); };
  auto set = [&](kj::StringPtr text) { return over("", kj::arrayPtr(&text, 1)); };
  for (auto text: {"[train]\noptimizer = { kind = 'adam', beta1 = 0.8 }",
           "[train.optimizer]\nkind = 'adam'\nbeta1 = 0.8"}) {
    CHECK(file(text) == with("kind = \"adam\", beta1 = 0.8"));
  }
  CHECK(set("train.optimizer={ kind = 'adam' }") == with("kind = \"adam\""));
  CHECK(set("train = { optimizer = { kind = 'adam' } }") == with("kind = \"adam\""));

  CHECK(set("train.optimizer={ kind = 'sgd', nesterov = true }") ==
        with("kind = \"sgd\", momentum = 0.9, nesterov = true"));
  CHECK(set("train.optimizer={ momentum = 0.5 }") == with("kind = \"sgd\", momentum = 0.5"));
  for (auto kind: {"train.optimizer.kind = 'nag'", "[train]\noptimizer.kind = 'nag'"}) {
    CHECK(file(kind) == with("kind = \"nag\", momentum = 0.9"));
  }
  CHECK(set("train.optimizer.kind=nag") == with("kind = \"nag\", momentum = 0.9"));
}

TEST_CASE("load: a relative path starts from the current folder, an absolute one from the root") {
  Loaded loaded;
  loaded.write("a/b/x.toml", "extends = '/a/y.toml'").write("a/y.toml", "y = 1");
  auto current = kj::Path::parse("a/c");
  for (auto path: {"../b/x.toml", "/a/b/x.toml"}) {
    auto document = load(*loaded.folder, path, nullptr, loaded.diagnostics, current);
    CHECK(document->file == path);
    CHECK(document->root.find("y") != nullptr);
  }
  CHECK(loaded.diagnostics.count() == 0);
}

TEST_CASE("load: extending a missing file, or extending in a circle, is an error at that word") {
  Loaded loaded;
  loaded.write("c/x.toml", "extends = 'bas.toml'\na = 1\n").read("c/x.toml");
  CHECK(loaded.errors() == R"(c/x.toml:1:11: error: there is no file `c/bas.toml`
  1 | extends = 'bas.toml'
    |           ^^^^^^^^^^
  help: the path starts at the folder of c/x.toml
1 error in c/x.toml; nothing was started.
)");
  CHECK(!loaded.document->complete);
  CHECK(loaded.printed() == "a = 1\n");

  Loaded circle;
  circle.write("x.toml", "extends = 'c/y.toml'").write("c/y.toml", "extends = '../x.toml'");
  circle.read("x.toml");
  CHECK(circle.errors() ==
        R"(c/y.toml:1:11: error: `extends` leads back to the same file: x.toml → c/y.toml → x.toml
  1 | extends = '../x.toml'
    |           ^^^^^^^^^^^
  help: a file cannot extend a file that extends it
1 error; nothing was started.
)");

  for (auto odd: {"5", "'..'", "'../../../x'", "'.'", "''", "'c'", "\"a\\u0000b\"", "['y.toml']"}) {
    CAPTURE(odd);
    Loaded other;
    other.write("x.toml", kj::str("extends = ", odd)).write("c/y.toml", "").read("x.toml");
    CHECK(other.diagnostics.count() == 1);
  }
}

TEST_CASE("load: says why it cannot extend a file that is not a readable regular file") {
  char top[] = "/tmp/document_test.XXXXXX";
  REQUIRE(mkdtemp(top) != nullptr);
  auto system = kj::newDiskFilesystem();
  auto place = kj::Path::parse(kj::StringPtr(top).slice(1));
  auto folder = system->getRoot().openSubdir(place, kj::WriteMode::MODIFY);
  KJ_DEFER(system->getRoot().remove(place));
  REQUIRE(::mkfifo(kj::str(top, "/pipe").cStr(), 0666) == 0);
  REQUIRE(::mkdir(kj::str(top, "/folder").cStr(), 0777) == 0);
  REQUIRE(::symlink("loop", kj::str(top, "/loop").cStr()) == 0);
  REQUIRE(::symlink("pipe", kj::str(top, "/link").cStr()) == 0);
  auto errorOf = [&](kj::StringPtr base) {
    folder->openFile(kj::Path("x.toml"), kj::WriteMode::CREATE | kj::WriteMode::MODIFY)
        ->writeAll(kj::str("extends = '", base, "'\n"));
    Diagnostics diagnostics;
    auto document = load(*folder, "x.toml", nullptr, diagnostics);
    REQUIRE(diagnostics.count() == 1);
    auto& error = diagnostics.all()[0];
    return shown(kj::str(error.span.toString(), " ", error.message));
  };
  CHECK(errorOf("pipe") == "x.toml:1:11 cannot read pipe: it is not a regular file");
  CHECK(errorOf("link") == "x.toml:1:11 cannot read link: it is not a regular file");
  CHECK(errorOf("folder") == "x.toml:1:11 cannot read folder: it is a directory");
  CHECK(errorOf("loop") == "x.toml:1:11 cannot read loop: Too many levels of symbolic links");
  CHECK(errorOf("none") == "x.toml:1:11 there is no file `none`");
  if (::geteuid() == 0) return;  // root may read every file
  folder->openFile(kj::Path("secret"), kj::WriteMode::CREATE);
  REQUIRE(::chmod(kj::str(top, "/secret").cStr(), 0) == 0);
  CHECK(errorOf("secret") == "x.toml:1:11 cannot read secret: Permission denied");
}

TEST_CASE("load: a misspelt `extends` is the only error, and `--set extends=…` is refused") {
  Loaded loaded;
  loaded.write("x.toml", "extend = 'base.toml'\na = 1\n").read("x.toml");
  CHECK(loaded.errors() == R"(x.toml:1:1: error: unknown key `extend` at the top level
  1 | extend = 'base.toml'
    | ^^^^^^
  help: did you mean `extends`?
1 error in x.toml; nothing was started.
)");
  CHECK(!loaded.document->complete);
  CHECK(loaded.printed() == "a = 1\n");

  Loaded set;
  const kj::StringPtr overrides[] = {"extends=base.toml"};
  set.write("x.toml", "a = 1\n").read("x.toml", overrides);
  CHECK(set.errors() ==
        R"(--set extends:1:1: error: `extends` cannot be set on the command line
  1 | extends=base.toml
    | ^^^^^^^
  help: write it into an experiment file
1 error; nothing was started.
)");
  CHECK(set.printed() == "a = 1\n");
}

TEST_CASE("load: shows a syntax error of an extended file there, and reads the rest") {
  Loaded loaded;
  loaded.write("x.toml", "extends = 'base.toml'\na = 1\n")
      .write("base.toml", "b 2\n")
      .read("x.toml");
  CHECK(loaded.errors() == R"(base.toml:1:3: error: this is not TOML: expected '=', saw '2'
  1 | b 2
    |   ^
1 error; nothing was started.
)");
  CHECK(!loaded.document->complete);
  CHECK(loaded.printed() == "a = 1\n");
}

TEST_CASE("load: throws only if the file itself cannot be read") {
  Loaded loaded;
  auto failureOf = [&](kj::StringPtr path) {
    KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { loaded.read(path); })) {
      return kj::str(exception->getDescription());
    }
    return kj::str("none");
  };
  CHECK(shown(failureOf("c/none.toml")) == "there is no file `c/none.toml`");
  loaded.write("folder/x", "");
  CHECK(shown(failureOf("folder")) == "cannot read folder: it is a directory");
  loaded.write("large.toml", kj::str("# ", kj::repeat('x', 1 << 20)));
  CHECK(shown(failureOf("large.toml")) ==
        "cannot read large.toml as an experiment file: it has 1048578 bytes, but an experiment "
        "file has at most 1048576. Name the .toml file");
}

TEST_CASE("parse: refuses keys with very many parts, and values that are nested very deeply") {
  auto deep = kj::str("a", kj::strArray(kj::repeat(".b"_kj, 100000), ""));
  const doctest::Contains message("error: this key has more than 256 parts\n");
  const kj::String refused[] = {kj::str(deep, " = 1\n"), kj::str("x = 1\n[", deep, "]\n"),
      kj::str("x = {", deep, " = 1}\n"), kj::str("x = '''\n'''\n", deep, " = 1\n"),
      kj::str("\"\".", deep, " = 1\n"), kj::str("x = \"\\\"\" # '\n", deep, " = 1\n")};
  for (auto& text: refused) CHECK(errorsOf(text) == message);
  const kj::String right[] = {kj::str("x = \"", deep, "\"\n"), kj::str("# a # ", deep, "\n"),
      kj::str("x = \"\"\"a \"\n", deep, "\n\"\"\"\n"),
      kj::str("x = [0.1", kj::strArray(kj::repeat(", 0.1"_kj, 1000), ""), "]\n")};
  for (auto& text: right) CHECK(errorsOf(text) == "");
  Loaded loaded;
  auto set = kj::str(deep, "=1");
  const kj::StringPtr overrides[] = {set};
  loaded.write("x.toml", "name = 'x'\n").read("x.toml", overrides);
  CHECK(loaded.errors() == message);
  auto lists = kj::str("x = ", kj::strArray(kj::repeat("["_kj, 1000), ""), "\n");
  CHECK(errorsOf(lists) == doctest::Contains("error: lists and tables are nested too deeply here"));
}

TEST_CASE("load: lays --set over the file, in TOML or as a bare string") {
  Loaded loaded;
  const kj::StringPtr overrides[] = {"data.batch_size=64", "data.dataset = mnist ",
      "name = \"q r\"", "train.optimizer={ kind = 'sgd', rates = [0.1, 1] }",
      "data.source=/a b/ü.tar", "on=true", "data.note=", "train.optimizer.kind=adam"};
  loaded.write("x.toml", "name = 'x'\n[data]\nbatch_size = 1\n").read("x.toml", overrides);
  CHECK(loaded.errors() == "");
  CHECK(loaded.printed() == R"(name = "q r"
on = true

[data]
batch_size = 64
dataset = "mnist"
source = "/a b/ü.tar"
note = ""

[train]
optimizer = { kind = "adam", rates = [0.1, 1] }
)");
  auto& data = sectionOf(loaded.document->root, "data");
  CHECK(shown(placeOf(data, "batch_size")) == "--set data.batch_size:1:17");
  CHECK(shown(placeOf(data, "dataset")) == "--set data.dataset:1:16");
  CHECK(shown(data.span.toString()) == "x.toml:2:1");
  loaded.diagnostics.error(KJ_ASSERT_NONNULL(data.find("source")).value->span, "no such folder");
  loaded.diagnostics.error(KJ_ASSERT_NONNULL(data.find("note")).keySpan, "unknown key");
  CHECK(loaded.errors() == R"(--set data.source:1:13: error: no such folder
  1 | data.source=/a b/ü.tar
    |             ^^^^^^^^^^
--set data.note:1:6: error: unknown key
  1 | data.note=
    |      ^^^^
2 errors; nothing was started.
)");
}

TEST_CASE("load: a --set that sets nothing is an error") {
  Loaded loaded;
  const kj::StringPtr overrides[] = {
      "data.batch_size", "=1", "data..x=1", "a='b", "#a=1", "", "a=1\nb=2", "a b=c"};
  loaded.write("x.toml", "a = 1\n").read("x.toml", overrides);
  CHECK(!loaded.document->complete);
  CHECK(loaded.printed() == "a = 1\n");
  CHECK(loaded.errors() == R"(--set data.batch_size:1:1: error: the value is missing
  1 | data.batch_size
    | ^^^^^^^^^^^^^^^
  help: write --set section.key=value
--set :1:1: error: this is not TOML: expected keys, tables, whitespace or comments, saw '='
  1 | =1
    | ^
--set data..x:1:1: error: this is not TOML: expected bare key starting character or string )"
                           R"(delimiter, saw '.'
  1 | data..x=1
    | ^^^^^^^
--set a:1:4: error: the text ends in the middle of a string
  1 | a='b
    |    ^
--set #a:1:1: error: the key is missing
  1 | #a=1
    | ^^^^
  help: write --set section.key=value
--set :1:1: error: the value is missing
  1 |
    | ^
  help: write --set section.key=value
--set a:1:1: error: the text has more than one line
  1 | a=1
    | ^^^
  help: write --set section.key=value
--set a b:1:3: error: this is not TOML: expected '=', saw 'b'
  1 | a b=c
    |   ^
8 errors; nothing was started.
)");
}

TEST_CASE("load: a --set that is not UTF-8 is an error, with and without quotes") {
  Loaded loaded;
  const kj::StringPtr overrides[] = {"data.source=/a/\xff", "name=\"\xff\""};
  loaded.write("x.toml", "a = 1\n").read("x.toml", overrides);
  CHECK(loaded.printed() == "a = 1\n");
  CHECK(loaded.errors() ==
        "--set data.source:1:13: error: this is not UTF-8 text\n"
        "  1 | data.source=/a/\xff\n"
        "    |             ^^^^\n"
        "  help: use names of files and folders in UTF-8, as experiment files are\n"
        "--set name:1:6: error: this is not UTF-8 text\n"
        "  1 | name=\"\xff\"\n"
        "    |      ^\n"
        "2 errors; nothing was started.\n");
}

TEST_CASE("print: reading the printed text gives the same tree") {
  auto text = R"(word = "\"\\\n\t\u0001\u007f ü€"
"odd key" = -9223372036854775808
reals = [1e-05, 0.1, 1.0, -0.0, 1e+22, 1.7976931348623157e+308, 5e-324, inf]
empty = []
nested = [[1, 2], []]
tables = [
  { a = 1, "b c" = [{ d = {} }] },
  {},
]

[section]
on = false
table = { x = { y = "z" } }
layers = [
  { kind = "relu" },
]

[empty_section]
)";
  Diagnostics diagnostics;
  auto document = parse("x.toml", text, diagnostics);
  CHECK(diagnostics.count() == 0);
  CHECK(shown(print(document->root)) == text);
}

TEST_CASE(
    "putAt: sets the value of a dotted key, and adds missing tables with the place of that key") {
  Diagnostics diagnostics;
  auto document =
      parse("x.toml", "[a]\nb = 1\nc = { d = 2 }\n[from]\n\"a.c.d\" = 3\n", diagnostics);
  auto& root = document->root;
  auto& entry = KJ_ASSERT_NONNULL(
      KJ_ASSERT_NONNULL(root.find("from")).value->content.get<Table>().find("a.c.d"));
  auto changed = clone(root);
  CHECK(putAt(changed, "a.c.d", entry.keySpan, *entry.value));
  CHECK(putAt(changed, "a.x.y", entry.keySpan, *entry.value));
  auto& value = KJ_ASSERT_NONNULL(valueAt(changed, "a.c.d"));
  CHECK(print(value) == "3");
  CHECK(value.span.toString() == "x.toml:5:11");
  CHECK(print(KJ_ASSERT_NONNULL(valueAt(changed, "a.x"))) == "{ y = 3 }");
  CHECK(KJ_ASSERT_NONNULL(valueAt(changed, "a.x")).span.toString() == "x.toml:5:1");
  // The tree that was cloned has not changed.
  CHECK(print(KJ_ASSERT_NONNULL(valueAt(root, "a.c.d"))) == "2");
}

TEST_CASE(
    "putAt: changes nothing if a value on the way is not a table, and valueAt finds nothing") {
  Diagnostics diagnostics;
  auto document = parse("x.toml", "[a]\nb = 1\n", diagnostics);
  auto before = print(document->root);
  CHECK_FALSE(putAt(document->root, "a.b.c", {}, *newValue(int64_t(2))));
  CHECK(print(document->root) == before);
  CHECK(valueAt(document->root, "a.b.c") == nullptr);
  CHECK(valueAt(document->root, "b") == nullptr);
}

TEST_CASE("parseValues: splits the values of an option at commas outside of quotes and brackets") {
  Diagnostics diagnostics;
  Document document;
  auto text = "a.b=1, 2.5,word,\"x,y\",[1, 2],{ k = [3, 4] },true"_kj;
  KJ_IF_MAYBE(entry, parseValues(document, "--sweep", text, diagnostics)) {
    CHECK(entry->key == "a.b");
    CHECK(print(*entry->value) == "[1, 2.5, \"word\", \"x,y\", [1, 2], { k = [3, 4] }, true]");
    auto& list = entry->value->content.get<List>();
    CHECK(list[1]->span.toString() == "--sweep a.b:1:8");
    CHECK(list[4]->span.toString() == "--sweep a.b:1:23");
  } else {
    FAIL("it was refused");
  }
  KJ_IF_MAYBE(entry, parseValues(document, "--sweep", "  a.b = 1, word ,2 ", diagnostics)) {
    CHECK(entry->key == "a.b");
    CHECK(entry->keySpan.toString() == "--sweep a.b:1:3");
    CHECK(print(*entry->value) == "[1, \"word\", 2]");
  } else {
    FAIL("it was refused");
  }
  for (auto wrong: {"a.b="_kj, "=1"_kj, " =1"_kj, "a.b"_kj, "a.b=1,"_kj, "a.b=[1"_kj, "a.b=\"x"_kj,
           "a.b=\xff"_kj}) {
    CAPTURE(wrong.cStr());
    Diagnostics errors;
    CHECK(parseValues(document, "--sweep", wrong, errors) == nullptr);
    CHECK(errors.count() == 1);
  }
}

}  // namespace
}  // namespace configs
