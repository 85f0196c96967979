// tools/bench/torch_python.h: finds the Python with the PyTorch to compare with.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

namespace tools {

// A Python that loads PyTorch.
struct TorchPython {
  kj::String program;
  kj::String version;  // of PyTorch, such as 2.15.0+cpu
};

// The result of a search: the Python with the newest PyTorch, or null.
struct TorchSearch {
  kj::Maybe<TorchPython> newest;
  // One line for each Python whose PyTorch does not load.
  kj::Vector<kj::String> notes;

  // Returns in one line why `newest` is empty.
  kj::String whyNone() const;
};

// Finds the PyTorch to compare with. `chosen` names a Python or the folder of a virtual
// environment. If `chosen` is empty, the environment variable RUNNER_PYTHON does. Without either,
// takes the newest PyTorch of $VIRTUAL_ENV, of every `python3` and `python3.N` on the path, and of
// Debian's /usr/bin/python3. Each candidate that has PyTorch loads it, which takes seconds. Throws
// if a Python that was named does not have PyTorch, or does not load it.
TorchSearch findTorch(kj::StringPtr chosen = nullptr);

// Returns the Pythons in the folders of `path` (as in $PATH), without those that are the same file
// under another name. `virtualEnvironment` is a folder with bin/python3, or empty.
kj::Vector<kj::String> pythonsOn(kj::StringPtr path, kj::StringPtr virtualEnvironment);

// Returns the Python with the newest PyTorch. Of several with the same version, returns the first.
TorchSearch newestTorch(kj::ArrayPtr<const kj::String> programs);

}  // namespace tools
