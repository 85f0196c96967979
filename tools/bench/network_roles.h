// tools/bench/network_roles.h: the processes of `bench network`: workers and servers of an
// experiment, without its data.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace tools {

using kj::uint;

// The first argument of a `bench` process that is such a role.
constexpr kj::StringPtr NETWORK_ROLE = "network-role"_kj;

struct NetworkRole {
  bool isServer;
  uint index;
  bool waits;  // the worker does not compute, but waits as long as KvOrder::WAIT specifies
  kj::StringPtr file;
  kj::ArrayPtr<const kj::StringPtr> settings;  // `KEY=VALUE`, laid over the file
};

// Returns the arguments that start the role, including this program's name.
kj::Array<kj::String> wordsOf(const NetworkRole& role);

// Runs the role that `words` name, without NETWORK_ROLE, until the bench ends it. A worker knows
// these orders:
//
//   TRIPS     makes `count` training steps, as a worker of the experiment does, and also waits for
//             the answers to the last one. Answers the nanoseconds of each, without that wait
//   COMPUTE   computes `count` steps without the store. Answers the nanoseconds of each
//   EXCHANGE  pushes and pulls for `count` steps without computing. Answers the nanoseconds of each
//   WAIT      from now on, computing a step takes `count` nanoseconds. Answers 0
//   CHECK     answers a number that is the same for equal parameters
//   TRAFFIC   answers, for each server, the bytes of values that were pushed to it and that it
//             answered so far
void runNetworkRole(kj::ArrayPtr<const kj::StringPtr> words);

}  // namespace tools
