#include "tests/hosts/ssh_job.h"

#include <doctest/doctest.h>

namespace tests {

kj::Own<Command> runBySsh(const Hosts& hosts, kj::StringPtr file, kj::StringPtr names,
    kj::ArrayPtr<const kj::StringPtr> more) {
  auto list = newFolder();
  auto path = kj::str(list, "/hosts.txt");
  kj::Vector<char> lines;
  for (char c: names) lines.add(c == ' ' ? '\n' : c);
  lines.add('\n');
  writeFile(path, kj::heapString(lines.begin(), lines.size()));
  auto runs = newFolder();
  auto set = kj::str("cluster.hosts=", path);
  kj::Vector<kj::StringPtr> words;
  words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "run", file, "--runs", runs, "--set",
      "cluster.launcher=ssh", "--set", "cluster.servers=1", "--set", set});
  for (auto each: more) {
    if (!each.startsWith("--")) words.add("--set");
    words.add(each);
  }
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  return hosts.start(0, words, environment);
}

void checkNothingLeft(const Hosts& hosts, std::initializer_list<kj::uint> which) {
  constexpr kj::uint GONE_WITHIN_S = 10;
  for (auto host: which) {
    kj::Vector<Process> ours;
    for (auto& process: hosts.processes(host)) {
      // sshd keeps a process for a connection that was cut off, until TCP gives up.
      if (!process.commandLine.startsWith("sshd: ")) ours.add(kj::mv(process));
    }
    INFO(doctest::String(Hosts::name(host).cStr()));
    CHECK(haveEnded(ours, GONE_WITHIN_S));
  }
}

}  // namespace tests
