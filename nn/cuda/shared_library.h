// nn/cuda/shared_library.h: finds and opens a vendor's library when it is needed, not when the
// program starts.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace nn::cuda {

// Made by tools/bazel/dl_stubs.bzl: the names of the vendor's functions, and where each jumps to.
struct SharedLibrary {
  const char* soname;   // "libcudnn.so.9"
  const char* product;  // what one installs to have it: "cuDNN 9"
  kj::ArrayPtr<const char* const> names;
  void** functions;  // as many; load() fills them
};

// What a search depends on: variables of the environment, empty if they are not set, and the root
// of the tree of files, empty for this machine's.
struct Surroundings {
  kj::StringPtr root = nullptr;
  kj::StringPtr libraries = nullptr;    // RUNNER_CUDA_LIBRARIES: folders, with colons between
  kj::StringPtr path = nullptr;         // PATH
  kj::StringPtr virtualEnv = nullptr;   // VIRTUAL_ENV
  kj::StringPtr condaPrefix = nullptr;  // CONDA_PREFIX

  static Surroundings ofProcess();  // points into the environment
};

// Returns where `soname` may be, best first, as dlopen() takes it: in the folders of
// RUNNER_CUDA_LIBRARIES, wherever the loader finds it, in the toolkit, and where pip installs it in
// the Pythons of this machine. Lists the last two only if the file exists. Runs no Python.
kj::Array<kj::String> placesOf(kj::StringPtr soname, const Surroundings& surroundings);

// Opens `library` at the first of `places` that has all its functions. It stays open. Returns null
// on success, or a sentence with what was found in each place, and the way out. No other thread may
// call one of the functions meanwhile.
kj::Maybe<kj::String> load(const SharedLibrary& library, kj::ArrayPtr<const kj::String> places);

// Throws. Called in place of a function whose library is not loaded yet.
[[noreturn]] void calledTooEarly(kj::StringPtr soname);

}  // namespace nn::cuda
