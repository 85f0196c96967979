#include "nn/cuda/shared_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

namespace nn::cuda {

namespace {

using kj::uint;

kj::StringPtr variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? kj::StringPtr() : kj::StringPtr(value);
}

// Returns the parts between colons, without empty ones.
kj::Array<kj::String> split(kj::StringPtr folders) {
  kj::Vector<kj::String> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= folders.size(); ++i) {
    if (i < folders.size() && folders[i] != ':') continue;
    if (i > begin) parts.add(kj::heapString(folders.slice(begin, i)));
    begin = i + 1;
  }
  return parts.releaseAsArray();
}

// Returns the files to which a shell would expand `pattern`, in the same order.
kj::Array<kj::String> matching(kj::StringPtr pattern) {
  glob_t found = {};
  KJ_DEFER(::globfree(&found));
  // If something fails, for example because a folder cannot be read, returns nothing from there.
  if (::glob(pattern.cStr(), GLOB_BRACE, nullptr, &found) != 0) return nullptr;
  return KJ_MAP(path, kj::arrayPtr(found.gl_pathv, found.gl_pathc)) {
    return kj::heapString(path);
  };
}

// Returns the path without links. Null if there is no such file.
kj::Maybe<kj::String> resolved(kj::StringPtr path) {
  char* real = ::realpath(path.cStr(), nullptr);
  KJ_DEFER(::free(real));
  if (real == nullptr) return nullptr;
  return kj::heapString(real);
}

// Returns the part before the last slash. There must be a slash.
kj::String parentOf(kj::StringPtr path) {
  return kj::heapString(path.slice(0, KJ_ASSERT_NONNULL(path.findLast('/'))));
}

// Returns the path that the link at `path` holds. Null if there is no link.
kj::Maybe<kj::String> linkAt(kj::StringPtr path) {
  char target[PATH_MAX];
  ssize_t size = ::readlink(path.cStr(), target, sizeof(target));
  if (size <= 0) return nullptr;
  auto held = kj::heapString(target, size);
  if (held.startsWith("/")) return kj::mv(held);
  return kj::str(parentOf(path), '/', held);
}

// Returns the folders with a `lib/python3…`. Those of the active environment come first. A
// `python3` in PATH may be a link to the `python3` of an environment, which may be a link to that
// of the system. Returns the folders of all of them.
kj::Array<kj::String> pythonPrefixes(const Surroundings& surroundings) {
  constexpr uint LINKS_MAX = 8;
  kj::Vector<kj::String> prefixes;
  for (auto prefix: {surroundings.virtualEnv, surroundings.condaPrefix}) {
    if (prefix.size() > 0) prefixes.add(kj::str(surroundings.root, prefix));
  }
  for (auto& folder: split(surroundings.path)) {
    auto python = kj::str(surroundings.root, folder, "/python3");
    if (::access(python.cStr(), X_OK) != 0) continue;
    for (uint i = 0; i < LINKS_MAX; ++i) {
      KJ_IF_MAYBE(programs, resolved(parentOf(python))) prefixes.add(parentOf(*programs));
      KJ_IF_MAYBE(next, linkAt(python)) {
        python = kj::mv(*next);
      } else {
        break;
      }
    }
  }
  for (auto prefix: {"/usr/local", "/usr"}) prefixes.add(kj::str(surroundings.root, prefix));
  return prefixes.releaseAsArray();
}

// Opens the library at `place`. Returns why it cannot be used if it lacks a function of `library`.
kj::Maybe<kj::String> loadFrom(kj::StringPtr place, const SharedLibrary& library) {
  void* handle = ::dlopen(place.cStr(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return kj::str(::dlerror());
  auto found = kj::heapArray<void*>(library.names.size());
  for (size_t i = 0; i < found.size(); ++i) {
    found[i] = ::dlsym(handle, library.names[i]);
    if (found[i] != nullptr) continue;
    ::dlclose(handle);
    return kj::str(place, ": has no function ", library.names[i]);
  }
  for (size_t i = 0; i < found.size(); ++i) library.functions[i] = found[i];
  return nullptr;
}

}  // namespace

Surroundings Surroundings::ofProcess() {
  return {.libraries = variable("RUNNER_CUDA_LIBRARIES"),
      .path = variable("PATH"),
      .virtualEnv = variable("VIRTUAL_ENV"),
      .condaPrefix = variable("CONDA_PREFIX")};
}

kj::Array<kj::String> placesOf(kj::StringPtr soname, const Surroundings& surroundings) {
  kj::Vector<kj::String> places;
  for (auto& folder: split(surroundings.libraries)) {
    places.add(kj::str(surroundings.root, folder, '/', soname));
  }
  places.add(kj::heapString(soname));
  kj::Vector<kj::String> files;  // without repetitions: several prefixes may lead to one file
  auto addFiles = [&](kj::StringPtr folders) {
    for (auto& path: matching(kj::str(folders, '/', soname))) {
      KJ_IF_MAYBE(file, resolved(path)) {
        bool known = false;
        for (auto& other: files) known = known || other == *file;
        if (known) continue;
        files.add(kj::mv(*file));
        // The link is opened, not its file: a library looks for its parts beside the name by which
        // it is opened.
        places.add(kj::mv(path));
      }
    }
  };
  addFiles(kj::str(surroundings.root, "/usr/local/cuda/lib64"));
  for (auto& prefix: pythonPrefixes(surroundings)) {
    addFiles(kj::str(prefix, "/lib/python3*/{site,dist}-packages/nvidia/*/lib"));
  }
  return places.releaseAsArray();
}

kj::Maybe<kj::String> load(const SharedLibrary& library, kj::ArrayPtr<const kj::String> places) {
  kj::Vector<kj::String> reasons;
  for (auto& place: places) {
    KJ_IF_MAYBE(reason, loadFrom(place, library)) {
      reasons.add(kj::mv(*reason));
    } else {
      return nullptr;
    }
  }
  return kj::str(library.soname, " was not found: ", kj::strArray(reasons, "; "), ". Install ",
      library.product, ", or set RUNNER_CUDA_LIBRARIES to its folder");
}

void calledTooEarly(kj::StringPtr soname) {
  KJ_FAIL_REQUIRE("a function is called before its library is loaded", soname);
}

}  // namespace nn::cuda
