// tools/bench/torch_python.h: which Python has the PyTorch that ours is compared with.
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

struct TorchSearch {
  kj::Maybe<TorchPython> newest;
  // One line for each Python whose PyTorch does not load.
  kj::Vector<kj::String> notes;

  // The reason for an empty `newest`, in one line.
  kj::String whyNone() const;
};

// Finds the PyTorch to compare with. `chosen` names a Python or the folder of a virtual
// environment; if it is empty, the environment variable RUNNER_PYTHON does. Without either, the
// newest PyTorch wins among those of $VIRTUAL_ENV, of every `python3` and `python3.N` on the path,
// and of Debian's /usr/bin/python3. Each candidate that has PyTorch loads it, which takes seconds.
// Throws if a Python that was named has none, or does not load it.
TorchSearch findTorch(kj::StringPtr chosen = nullptr);

// The Pythons in the folders of `path` (as in $PATH), without those that are the same file under
// another name. `virtualEnvironment` is a folder with bin/python3, or empty.
kj::Vector<kj::String> pythonsOn(kj::StringPtr path, kj::StringPtr virtualEnvironment);

// The Python with the newest PyTorch; of several with the same version, the first.
TorchSearch newestTorch(kj::ArrayPtr<const kj::String> programs);

}  // namespace tools
