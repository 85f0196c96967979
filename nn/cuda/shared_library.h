// nn/cuda/shared_library.h: finds and opens a vendor's library when it is needed, not when the
// program starts.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace nn::cuda {

// Made by tools/bazel/dl_stubs.bzl: the names of the vendor's functions, and where each jumps to.
struct SharedLibrary {
  const char* soname;   // "libcudnn.so.9"
  const char* product;  // what to install to get it: "cuDNN 9"
  kj::ArrayPtr<const char* const> names;
  void** functions;  // as many; load() fills them
};

// The inputs of a search: environment variables, empty if they are not set, and the root of the
// file tree, empty for this machine's.
struct Surroundings {
  kj::StringPtr root = nullptr;
  kj::StringPtr libraries = nullptr;    // RUNNER_CUDA_LIBRARIES: folders, with colons between
  kj::StringPtr path = nullptr;         // PATH
  kj::StringPtr virtualEnv = nullptr;   // VIRTUAL_ENV
  kj::StringPtr condaPrefix = nullptr;  // CONDA_PREFIX

  static Surroundings ofProcess();  // points into the environment
};

// Returns the places where `soname` may be, best first, as arguments of dlopen(): in the folders of
// RUNNER_CUDA_LIBRARIES, in the loader's own places, in the toolkit, and in the pip folders of this
// machine's Pythons. Lists the last two only if the file exists. Does not run Python.
kj::Array<kj::String> placesOf(kj::StringPtr soname, const Surroundings& surroundings);

// Opens `library` at the first of `places` that has all its functions. It stays open. Returns null
// on success. Otherwise returns a sentence with the problem in each place, and what to do. No other
// thread may call one of the functions meanwhile.
kj::Maybe<kj::String> load(const SharedLibrary& library, kj::ArrayPtr<const kj::String> places);

// Throws. Called in place of a function whose library is not loaded yet.
[[noreturn]] void calledTooEarly(kj::StringPtr soname);

}  // namespace nn::cuda
