#include "nn/cuda/shared_library.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/filesystem.h>

#include "tests/command.h"
#include "tests/text.h"

extern "C" {
int sampleAnswer();
int sampleQuestion(int six, int nine);
int absentAnswer();
}

namespace nn::cuda {

// Defined by dl_stubs in BUILD.
extern const SharedLibrary SAMPLE;
extern const SharedLibrary ABSENT;

namespace {

constexpr kj::StringPtr IN_PYTHON = "lib/python3.11/site-packages/nvidia/cudnn/lib"_kj;
constexpr kj::StringPtr OLD = "nn/cuda/testing/libsample_old.so"_kj;
constexpr kj::StringPtr WHOLE = "nn/cuda/testing/libsample.so"_kj;

// A folder that stands for the file system of a machine.
class Tree {
public:
  Tree(): root(tests::newFolder()), filesystem(kj::newDiskFilesystem()) {}

  const kj::String root;

  // Adds a copy of `source`, a file of Bazel's, or without it an empty executable file.
  void add(kj::StringPtr path, kj::StringPtr source = nullptr) {
    auto bytes = source.size() == 0
                     ? nullptr
                     : filesystem->getCurrent().openFile(kj::Path::parse(source))->readAllBytes();
    auto place = kj::Path(nullptr).evalNative(kj::str(root, '/', path));
    constexpr auto MODE = kj::WriteMode::CREATE | kj::WriteMode::CREATE_PARENT;
    filesystem->getRoot().openFile(place, MODE | kj::WriteMode::EXECUTABLE)->writeAll(bytes);
  }
  void link(kj::StringPtr path, kj::StringPtr to) {
    auto place = kj::Path(nullptr).evalNative(kj::str(root, '/', path));
    filesystem->getRoot().symlink(place, to, kj::WriteMode::CREATE | kj::WriteMode::CREATE_PARENT);
  }

  // Returns placesOf(), one line per place, without the root.
  kj::String places(kj::StringPtr soname, Surroundings surroundings) const {
    surroundings.root = root;
    auto lines = KJ_MAP(place, placesOf(soname, surroundings)) {
      return kj::str(place.startsWith(root) ? place.slice(root.size()) : place, "\n");
    };
    return kj::strArray(lines, "");
  }

private:
  kj::Own<kj::Filesystem> filesystem;
};

TEST_CASE("Libraries: without any variable, folder or toolkit, only the loader is asked") {
  CHECK(Tree().places("libx.so.1", {}) == "libx.so.1\n");
}

TEST_CASE("Libraries: searches RUNNER_CUDA_LIBRARIES, the loader, the toolkit, then the Pythons") {
  Tree tree;
  tree.add("usr/local/cuda/lib64/libx.so.1");
  tree.add(kj::str("venv/", IN_PYTHON, "/libx.so.1"));
  tree.add(kj::str("conda/", IN_PYTHON, "/libx.so.1"));
  tree.add("opt/python/bin/python3");
  tree.add("opt/python/lib/python3.13/site-packages/nvidia/cu13/lib/libx.so.1");
  tree.add("usr/local/lib/python3.11/dist-packages/nvidia/cudnn/lib/libx.so.1");
  tree.add("usr/lib/python3/dist-packages/nvidia/cudnn/lib/libx.so.1");
  Surroundings surroundings{.libraries = "/a::/b",
      .path = "/nowhere:/opt/python/bin",
      .virtualEnv = "/venv",
      .condaPrefix = "/conda"};
  CHECK(tree.places("libx.so.1", surroundings) ==
        "/a/libx.so.1\n"
        "/b/libx.so.1\n"
        "libx.so.1\n"
        "/usr/local/cuda/lib64/libx.so.1\n"
        "/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libx.so.1\n"
        "/conda/lib/python3.11/site-packages/nvidia/cudnn/lib/libx.so.1\n"
        "/opt/python/lib/python3.13/site-packages/nvidia/cu13/lib/libx.so.1\n"
        "/usr/local/lib/python3.11/dist-packages/nvidia/cudnn/lib/libx.so.1\n"
        "/usr/lib/python3/dist-packages/nvidia/cudnn/lib/libx.so.1\n");
  CHECK(tree.places("liby.so.1", surroundings) == "/a/liby.so.1\n/b/liby.so.1\nliby.so.1\n");
}

TEST_CASE("Libraries: a file with several names is tried once, by its first name") {
  Tree tree;
  tree.add("usr/bin/python3");
  tree.link("bin", "usr/bin");
  tree.add("store/libx.so.1");
  tree.link(kj::str("venv/", IN_PYTHON, "/libx.so.1"), kj::str(tree.root, "/store/libx.so.1"));
  tree.link(kj::str("usr/", IN_PYTHON, "/libx.so.1"), kj::str(tree.root, "/store/libx.so.1"));
  CHECK(tree.places("libx.so.1", {.path = "/bin:/usr/bin", .virtualEnv = "/venv"}) ==
        "libx.so.1\n/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libx.so.1\n");
}

TEST_CASE("Libraries: follows links from python3 to an environment, and from there to the system") {
  Tree tree;
  tree.add("usr/bin/python3.12");
  tree.link("usr/bin/python3", "python3.12");
  tree.link("opt/venv/bin/python3", kj::str(tree.root, "/usr/bin/python3"));
  tree.link("usr/local/bin/python3", kj::str(tree.root, "/opt/venv/bin/python3"));
  tree.add("opt/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libx.so.1");
  CHECK(tree.places("libx.so.1", {.path = "/usr/local/bin"}) ==
        "libx.so.1\n/opt/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libx.so.1\n");
}

TEST_CASE("Libraries: the message about a missing library names the places and the way out") {
  Tree tree;
  tree.add("usr/local/cuda/lib64/libabsent.so.7");  // of no bytes
  auto places = placesOf("libabsent.so.7", {.root = tree.root, .libraries = "/mine"});
  auto why = KJ_ASSERT_NONNULL(load(ABSENT, places));
  CHECK(why.startsWith("libabsent.so.7 was not found: "));
  CHECK(tests::contains(why, kj::str(tree.root, "/mine/libabsent.so.7: cannot open")));
  CHECK(tests::contains(why, "; libabsent.so.7: cannot open shared object file: No such file"));
  CHECK(tests::contains(why, "/usr/local/cuda/lib64/libabsent.so.7: file too short"));
  CHECK(why.endsWith(". Install the absent, or set RUNNER_CUDA_LIBRARIES to its folder"));

  auto called = kj::runCatchingExceptions([]() { absentAnswer(); });
  CHECK(tests::contains(KJ_ASSERT_NONNULL(called).getDescription(), "libabsent.so.7"));
}

TEST_CASE("Libraries: a library that lacks a function is skipped, and the next one is used") {
  Tree tree;
  tree.add("mine/libsample.so.1", OLD);
  Surroundings surroundings{.root = tree.root, .libraries = "/mine", .virtualEnv = "/venv"};
  auto why = KJ_ASSERT_NONNULL(load(SAMPLE, placesOf(SAMPLE.soname, surroundings)));
  CHECK(tests::contains(why, "/mine/libsample.so.1: has no function sampleQuestion; "));

  tree.add(kj::str("venv/", IN_PYTHON, "/libsample.so.1"), WHOLE);
  CHECK(load(SAMPLE, placesOf(SAMPLE.soname, surroundings)) == nullptr);
  CHECK(sampleAnswer() == 42);
  CHECK(sampleQuestion(6, 9) == 69);
}

}  // namespace
}  // namespace nn::cuda
