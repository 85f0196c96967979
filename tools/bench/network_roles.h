// tools/bench/network_roles.h: the processes of `bench network`: workers and servers of an
// experiment, without its data.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace tools {

using kj::uint;

// What tells `bench` to be one, first among its arguments.
constexpr kj::StringPtr NETWORK_ROLE = "network-role"_kj;

struct NetworkRole {
  bool isServer;
  uint index;
  bool waits;  // a worker computes nothing, but waits as long as KvOrder::WAIT says
  kj::StringPtr file;
  kj::ArrayPtr<const kj::StringPtr> settings;  // `KEY=VALUE`, laid over the file
};

// What starts it, this program's name included.
kj::Array<kj::String> wordsOf(const NetworkRole& role);

// Is the role that `words`, those behind NETWORK_ROLE, name, until the bench lets it go. A worker
// knows these orders:
//   TRIPS     so many training steps, as a worker of the experiment makes them; waits for what
//             comes of the last, too. The answer is the nanoseconds of each, without that
//   COMPUTE   so many times what a step computes, without the store; the same
//   EXCHANGE  so many times what a step pushes and pulls, without computing; the same
//   WAIT      from now on a step's computing takes so many nanoseconds; answers 0
//   CHECK     answers a number that equal parameters have in common
//   TRAFFIC   answers, for each server, the bytes of values that it was pushed and that it answered
//             so far
void runNetworkRole(kj::ArrayPtr<const kj::StringPtr> words);

}  // namespace tools
