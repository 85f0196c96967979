// tests/hosts/ssh_job.h: jobs whose roles `runner run` starts by ssh.
#pragma once

#include <initializer_list>

#include "tests/hosts/hosts.h"

namespace tests {

constexpr Hosts::Settings SSHD{.hasSshd = true};

// Starts `runner run` on host 0, with one server and its roles on the hosts that `names` lists,
// such as "h2 h3". `more` are further settings, and options such as "--copy-data".
kj::Own<Command> runBySsh(const Hosts& hosts, kj::StringPtr file, kj::StringPtr names,
    kj::ArrayPtr<const kj::StringPtr> more = nullptr);

// Checks that on the hosts of `which`, no process remains that the test has started.
void checkNothingLeft(const Hosts& hosts, std::initializer_list<kj::uint> which);

}  // namespace tests
