// tests/faults/roles_by_hand.h: starts single roles, as users do who have no launcher.
#pragma once

#include "tests/run.h"

namespace tests {

// Starts `runner role` with these words after it. `environment` is as in Command::Surroundings, and
// `program` is the path of `runner`. The role shares the cache of imported data with all runs of
// this test program.
kj::Own<Command> startByHand(kj::ArrayPtr<const kj::StringPtr> words,
    kj::ArrayPtr<const kj::StringPtr> environment = nullptr, kj::StringPtr program = RUNNER);

// Starts `runner role` for a server or worker of the job whose coordinator is at `address`. With
// `secretFile`, RUNNER_SECRET_FILE names it.
kj::Own<Command> startRole(kj::StringPtr file, kj::StringPtr role, uint index,
    kj::StringPtr address, kj::StringPtr secretFile = nullptr);

// Starts `runner role` for the coordinator of a job.
kj::Own<Command> startCoordinator(
    kj::StringPtr file, kj::StringPtr folder = newFolder(), kj::StringPtr secretFile = nullptr);

// Starts a coordinator, two servers and two workers, and checks that they train these weights and
// end with exit code 0.
void checkTrainsByHand(kj::StringPtr file, kj::StringPtr secretFile, kj::StringPtr weightsSha256);

// Waits until the coordinator says where it listens, and returns that address.
kj::String addressOf(Command& coordinator);

// Returns a random address of the loopback, with a port: 127.…:7000. No other test uses it.
kj::String ownPlace();

// Writes a secret of 64 times the same hexadecimal digit to a new file, which only its owner may
// read. Returns the path.
kj::String newSecretFile(char digit = 'a');

}  // namespace tests
