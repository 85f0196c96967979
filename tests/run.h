// tests/run.h: `runner run`, started on a file of the tests, and what it leaves behind.
#pragma once

#include "tests/command.h"

namespace tests {

// The program, in the data of a Bazel test.
constexpr kj::StringPtr RUNNER = "runner/runner"_kj;

// A run in a separate folder. All runs of a test program share one cache of imported data.
class Run {
public:
  // Starts `runner run FILE --set …` with each of `settings` (`train.seed=2`). FILE is
  // `<name>.toml` with that name inside.
  explicit Run(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings = nullptr,
      kj::StringPtr program = RUNNER);

  // The run's folder. read() returns the text of a file there.
  const kj::String folder;
  kj::String read(kj::StringPtr name) const { return readFile(kj::str(folder, "/", name)); }

  // Return the role processes that run now, or one of them. role() throws if it does not run.
  kj::Array<Process> roles() const { return processesWith(kj::str("--folder=", folder)); }
  Process role(kj::StringPtr role, uint index) const;

  Command command;

private:
  Run(kj::StringPtr program, kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings,
      kj::StringPtr runs, kj::StringPtr cache);
};

// Returns `RUNNER_CACHE=…`: the folder where Run keeps imported data.
kj::String cacheSetting();

// A finished run.
struct Trained {
  kj::String folder;
  kj::String weightsSha256;  // as in the last line of stdout
};

// Returns the results of the run in `folder`, which has ended with `ended`. Throws with its output
// if the exit code is not 0.
Trained finished(const Ended& ended, kj::StringPtr folder);

// Runs `file` to its end. If the exit code is not 0, throws with its output.
Trained train(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings = nullptr,
    kj::StringPtr program = RUNNER);

// Returns the lines of a text, which must end with a newline unless it is empty.
kj::Vector<kj::String> linesOf(kj::StringPtr text);

// Returns all values in the weights.safetensors of the run.
kj::Array<float> weightsOf(const Trained& run);

}  // namespace tests
