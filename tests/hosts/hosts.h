// tests/hosts/hosts.h: several hosts on this machine, for the tests of jobs that leave one.
#pragma once

#include "tests/run.h"

namespace tests {

// Network namespaces, each with an address and a loopback of its own, on one bridge. Programs in
// different ones reach each other by TCP only. Needs root. All are removed when this object goes.
class Hosts {
public:
  // Returns why this machine cannot have such hosts. Null if it can.
  static kj::Maybe<kj::String> whyNot();

  explicit Hosts(uint count);
  KJ_DISALLOW_COPY(Hosts);

  // The hosts count from 0.
  kj::String address(uint host) const { return kj::str("10.77.0.", host + 1); }

  // Starts a program on a host, with `environment` as in Command::Surroundings.
  kj::Own<Command> start(uint host, kj::ArrayPtr<const kj::StringPtr> words,
      kj::ArrayPtr<const kj::StringPtr> environment = nullptr) const;

  // The bridge drops all that goes to or comes from a host, without a word to anybody, until
  // join().
  void cut(uint host) const;
  void join(uint host) const;

private:
  // Those that were made, also if the next one could not be.
  struct Namespaces {
    kj::Vector<kj::String> names;

    ~Namespaces();
    void add(kj::String name);
  };

  kj::String name(uint host) const;

  const kj::String prefix;  // of the namespaces' names: no two test programs share one
  const uint count;
  Namespaces namespaces;
};

}  // namespace tests
