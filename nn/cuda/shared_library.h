// nn/cuda/shared_library.h: a vendor's library that is looked for when it is needed, not when the
// program starts.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace nn::cuda {

// What tools/bazel/dl_stubs.bzl makes: the vendor's functions by name, and where each jumps to.
struct SharedLibrary {
  const char* soname;   // "libcudnn.so.9"
  const char* product;  // what one installs to have it: "cuDNN 9"
  kj::ArrayPtr<const char* const> names;
  void** functions;  // as many; load() fills them
};

// What a search goes by: variables of the environment, empty if they are not set, and the root of
// the tree of files, empty for this machine's.
struct Surroundings {
  kj::StringPtr root = nullptr;
  kj::StringPtr libraries = nullptr;    // RUNNER_CUDA_LIBRARIES: folders, with colons between
  kj::StringPtr path = nullptr;         // PATH
  kj::StringPtr virtualEnv = nullptr;   // VIRTUAL_ENV
  kj::StringPtr condaPrefix = nullptr;  // CONDA_PREFIX

  static Surroundings ofProcess();  // points into the environment
};

// Where `soname` may be, best first, as dlopen() takes it: in folders that RUNNER_CUDA_LIBRARIES
// names; wherever the loader finds it; in the toolkit; in the packages of the Pythons here, where
// pip puts it. The last two only where such a file is. Runs no Python.
kj::Array<kj::String> placesOf(kj::StringPtr soname, const Surroundings& surroundings);

// Opens `library` at the first of `places` that has all its functions, for good. Null if that went
// well, else a sentence that says what was found in each place, and the way out. Not while another
// thread calls one of the functions.
kj::Maybe<kj::String> load(const SharedLibrary& library, kj::ArrayPtr<const kj::String> places);

// What a function does before its library is loaded: throws.
[[noreturn]] void calledTooEarly(kj::StringPtr soname);

}  // namespace nn::cuda
