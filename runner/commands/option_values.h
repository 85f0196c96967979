// runner/commands/option_values.h: what the options of several commands take.
#pragma once

#include <kj/main.h>

#include "rpc/trace.h"

namespace runner {

using Validity = kj::MainBuilder::Validity;
// Takes the word behind an option, or says what is wrong with it.
using SetOption = kj::Function<Validity(kj::StringPtr)>;

// The path of a folder that is there or can be made. `advice` answers an empty word: "name a
// folder, e.g. --runs runs". `to` must outlive what comes back.
SetOption folderSetter(kj::String& to, kj::StringPtr advice);

// `A-B`, steps to record. `to` must outlive what comes back.
SetOption traceStepsSetter(kj::Maybe<rpc::TraceSteps>& to);

}  // namespace runner
