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

// The parts between colons that are not empty.
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

// The files that a shell would put in place of `pattern`, in its order.
kj::Array<kj::String> matching(kj::StringPtr pattern) {
  glob_t found = {};
  KJ_DEFER(::globfree(&found));
  // Whatever goes wrong, a folder that may not be read for one, there is nothing to find there.
  if (::glob(pattern.cStr(), GLOB_BRACE, nullptr, &found) != 0) return nullptr;
  return KJ_MAP(path, kj::arrayPtr(found.gl_pathv, found.gl_pathc)) {
    return kj::heapString(path);
  };
}

// Without links; null if there is no such file.
kj::Maybe<kj::String> resolved(kj::StringPtr path) {
  char* real = ::realpath(path.cStr(), nullptr);
  KJ_DEFER(::free(real));
  if (real == nullptr) return nullptr;
  return kj::heapString(real);
}

// What stands before the last slash, of which there must be one.
kj::String parentOf(kj::StringPtr path) {
  return kj::heapString(path.slice(0, KJ_ASSERT_NONNULL(path.findLast('/'))));
}

// The path that the link at `path` holds; null if there is no link.
kj::Maybe<kj::String> linkAt(kj::StringPtr path) {
  char target[PATH_MAX];
  ssize_t size = ::readlink(path.cStr(), target, sizeof(target));
  if (size <= 0) return nullptr;
  auto held = kj::heapString(target, size);
  if (held.startsWith("/")) return kj::mv(held);
  return kj::str(parentOf(path), '/', held);
}

// Folders with a `lib/python3…`, those of the environment that is switched on first. A `python3` on
// the path may be a link to that of an environment, which is one to the system's: each counts.
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

// The library at `place` with all of `library`'s functions, or why not.
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
  kj::Vector<kj::String> files;  // several prefixes may lead to one
  auto addFiles = [&](kj::StringPtr folders) {
    for (auto& path: matching(kj::str(folders, '/', soname))) {
      KJ_IF_MAYBE(file, resolved(path)) {
        bool known = false;
        for (auto& other: files) known = known || other == *file;
        if (known) continue;
        files.add(kj::mv(*file));
        // The link, not the file: a library looks for its parts beside the name it is opened by.
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
  return kj::str(library.soname, " was not found: ", kj::strArray(reasons, "; "), "; install ",
      library.product, ", or name its folder in RUNNER_CUDA_LIBRARIES");
}

void calledTooEarly(kj::StringPtr soname) {
  KJ_FAIL_REQUIRE("a function is called before its library is loaded", soname);
}

}  // namespace nn::cuda
