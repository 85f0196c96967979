// runner/commands/option_values.h: reads the arguments of options that several commands have.
#pragma once

#include <kj/main.h>

#include "rpc/trace.h"

namespace runner {

using Validity = kj::MainBuilder::Validity;
// Takes the argument of an option, or returns what is wrong with it.
using SetOption = kj::Function<Validity(kj::StringPtr)>;

// Returns a function that takes the path of a folder that exists or can be made. `advice` is the
// error for an empty word: "name a folder, e.g. --runs runs". `to` must outlive the result.
SetOption folderSetter(kj::String& to, kj::StringPtr advice);
// The same for any text that is not empty.
SetOption textSetter(kj::String& to, kj::StringPtr advice);

// Returns a function for an option without an argument. It sets `to`, which must outlive the
// result, to `value`.
kj::Function<Validity()> flagSetter(bool& to, bool value = true);

// Returns a function that takes a whole number from 1 to `most`. `to` must outlive the result.
SetOption countSetter(uint64_t& to, uint64_t most);

// Returns a function that takes `A-B`, the steps to record. `to` must outlive the result.
SetOption traceStepsSetter(kj::Maybe<rpc::TraceSteps>& to);

}  // namespace runner
