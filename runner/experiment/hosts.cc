#include "runner/experiment/hosts.h"

#include <kj/vector.h>
#include <string.h>

#include "runner/system/addresses.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr size_t HOSTS_MAX = 1024;
constexpr uint SLOTS_MAX = 4096;
constexpr uint PORT_MAX = 65535;
constexpr size_t NAME_LENGTH_MAX = 253;  // RFC 1035

// Reports what is wrong with the text of a host. Takes the end of a sentence that begins with the
// text, and what to do.
using Complain = kj::FunctionParam<void(kj::StringPtr what, kj::StringPtr help)>;

// Whether ssh takes `word` as a name. It would take a word that begins with a dash as an option.
bool isName(kj::StringPtr word) {
  if (word.size() == 0 || word.size() > NAME_LENGTH_MAX || word[0] == '-') return false;
  for (char c: word) {
    bool isLetter = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
    if (!isLetter && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

// Returns the number that `digits` mean. 0 if it is not from 1 to `most`.
uint numberFrom1(kj::StringPtr digits, uint most) {
  return parseWhole(digits, most).orDefault(0);
}

kj::Vector<kj::String> wordsOf(kj::StringPtr text) {
  kj::Vector<kj::String> words;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); i++) {
    if (i < text.size() && text[i] != ' ' && text[i] != '\t') continue;
    if (i > begin) words.add(kj::heapString(text.slice(begin, i)));
    begin = i + 1;
  }
  return words;
}

// Reads `user@node1:2222` or `user@[fd00::1]:2222`.
kj::Maybe<Host> parseAddress(kj::StringPtr text, Complain& complain) {
  Host host;
  auto rest = kj::str(text);
  KJ_IF_MAYBE(at, rest.findLast('@')) {
    host.user = kj::heapString(rest.slice(0, *at));
    rest = kj::heapString(rest.slice(*at + 1));
    if (!isName(host.user)) {
      complain(" has no valid user name before its `@`", "write \"user@node1\"");
      return nullptr;
    }
  }
  kj::String port;
  bool isBracketed = rest.startsWith("[");
  if (!isBracketed && isIpv6(rest)) {
    complain(" is an IPv6 address without brackets", kj::str("write \"[", rest, "]\""));
    return nullptr;
  }
  auto nameEnd = isBracketed ? rest.findFirst(']').orDefault(0) + 1
                             : rest.findFirst(':').orDefault(rest.size());
  bool hasPort = nameEnd < rest.size();
  bool isWhole = !hasPort || rest[nameEnd] == ':';
  host.name = isBracketed && nameEnd > 1 ? kj::heapString(rest.slice(1, nameEnd - 1))
                                         : kj::heapString(rest.slice(0, nameEnd));
  if (!isWhole || !(isBracketed ? isIpv6(host.name) : isName(host.name))) {
    complain(" does not begin with a host",
        "write a host name, an IPv4 address, or an IPv6 address in brackets");
    return nullptr;
  }
  if (hasPort) {
    host.sshPort = numberFrom1(rest.slice(nameEnd + 1), PORT_MAX);
    if (host.sshPort == 0) {
      complain(" has no port from 1 to 65535 after its colon",
          "the port is that of ssh. Write slots=2 for two workers");
      return nullptr;
    }
  }
  return kj::mv(host);
}

kj::Maybe<Host> parseHost(kj::StringPtr text, Complain complain) {
  auto words = wordsOf(text);
  if (words.empty()) {
    complain(" names no host", "write \"node1\"");
    return nullptr;
  }
  KJ_IF_MAYBE(host, parseAddress(words[0], complain)) {
    for (auto& word: words.slice(1, words.size())) {
      bool isSlots = word.startsWith("slots=");
      uint slots = isSlots ? numberFrom1(word.slice(strlen("slots=")), SLOTS_MAX) : 0;
      if (slots > 0 && host->slots == nullptr) {
        host->slots = slots;
        continue;
      }
      auto what = isSlots && slots > 0 ? kj::str(" has slots twice")
                  : isSlots            ? kj::str(" needs slots from 1 to ", SLOTS_MAX)
                                       : kj::str(" has an unknown word `", word, "`");
      complain(what, kj::str("write \"", words[0], "\" or \"", words[0], " slots=2\""));
      return nullptr;
    }
    return kj::mv(*host);
  }
  return nullptr;
}

// Adds `host` to `hosts`, or its slots to those of the same host: files such as $PBS_NODEFILE name
// a host once per slot. Returns false if that host has another user or port.
bool merge(Host host, kj::Vector<Host>& hosts) {
  for (auto& other: hosts) {
    if (other.name != host.name) continue;
    if (other.user != host.user || other.sshPort != host.sshPort) return false;
    other.slots = other.slots.orDefault(1) + host.slots.orDefault(1);
    return true;
  }
  hosts.add(kj::mv(host));
  return true;
}

}  // namespace

kj::String Host::toString() const {
  bool isBracketed = name.findFirst(':') != nullptr;
  return kj::str(user, user.size() > 0 ? "@" : "", isBracketed ? "[" : "", name,
      isBracketed ? "]" : "", sshPort > 0 ? kj::str(":", sshPort) : kj::str());
}

kj::Array<Host> readHosts(configs::Reader& reader) {
  auto lines = reader.textsOrLines("hosts",
      "The machines that run servers and workers, for launchers `ssh`, `mpi` and `manual`: "
      "`\"node1\"`, `\"user@node2:2222 slots=2\"`, or the path of a file with one of these per "
      "line (`#` begins a comment). User and port are those of ssh. Launcher `mpi` takes no port. "
      "Servers are assigned to the hosts in turn, and so are workers. A host with `slots=N` runs "
      "at most N workers, and each worker there has its own GPUs: the first worker has those that "
      "`devices` names, and each further worker has the next ones, the same number per worker. If "
      "a host is named several times, its slots are added, and a name without slots counts as one "
      "slot.");
  kj::Vector<Host> hosts;
  for (auto& line: lines) {
    auto complain = [&](kj::StringPtr what, kj::StringPtr help) {
      reader.diagnostics().error(line.span, kj::str(line.place, "`", line.text, "`", what), help);
    };
    KJ_IF_MAYBE(host, parseHost(line.text, complain)) {
      if (!merge(kj::mv(*host), hosts)) {
        complain(" is named above with another user or port",
            "give each host the same user and port everywhere");
      }
    }
  }
  if (hosts.size() > HOSTS_MAX) {
    reader.error("hosts", kj::str("there are ", hosts.size(), " hosts"),
        kj::str("name at most ", HOSTS_MAX));
  } else if (lines.size() == 0 && reader.has("hosts") && reader.isRight("hosts")) {
    reader.error("hosts", "no host is named", "name one, or leave the key out");
  }
  return hosts.releaseAsArray();
}

kj::Maybe<RoleHosts> placeRoles(
    kj::ArrayPtr<const Host> hosts, uint servers, uint serversPerProcess, uint workers) {
  RoleHosts placed{
      kj::heapArray<uint>(servers), kj::heapArray<uint>(workers), kj::heapArray<uint>(workers)};
  for (uint i = 0; i < servers; i++) placed.servers[i] = i / serversPerProcess % hosts.size();
  auto taken = kj::heapArray<uint>(hosts.size());
  for (auto& count: taken) count = 0;
  size_t host = 0;
  for (uint i = 0; i < workers; i++) {
    size_t seen = 0;
    auto isFull = [&]() { return taken[host] == hosts[host].slots.orDefault(workers); };
    for (; isFull(); host = (host + 1) % hosts.size()) {
      if (++seen > hosts.size()) return nullptr;
    }
    placed.workers[i] = host;
    placed.localRanks[i] = taken[host]++;
    host = (host + 1) % hosts.size();
  }
  return kj::mv(placed);
}

}  // namespace runner
