// The input of a role from a cluster: variables and flags, one `NAME=value` per line, and the file
// by which roles find their coordinator.
#include <kj/map.h>
#include <string.h>

#include "rpc/wire/secret.h"
#include "runner/roles/address_file.h"
#include "runner/roles/environment_roles.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr kj::StringPtr ADDRESS_FILE = "ADDRESS_FILE"_kj;

using Variables = kj::HashMap<kj::String, kj::String>;

Variables variablesIn(kj::ArrayPtr<const char> text) {
  Variables variables;
  while (text.size() > 0) {
    auto found = static_cast<const char*>(::memchr(text.begin(), '\n', text.size()));
    size_t end = found == nullptr ? text.size() : found - text.begin();
    // A variable has no NUL.
    auto line = kj::str(kj::heapString(text.slice(0, end)).cStr());
    KJ_IF_MAYBE(equals, line.findFirst('=')) {
      variables.upsert(kj::heapString(line.slice(0, *equals)), kj::str(line.slice(*equals + 1)),
          [](kj::String& old, kj::String&& next) { old = kj::mv(next); });
    }
    text = text.slice(kj::min(end + 1, text.size()), text.size());
  }
  return variables;
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  uint8_t choice = dice.byte();
  auto variables = variablesIn(dice.all().asChars());
  auto value = [&](kj::StringPtr name) -> kj::Maybe<kj::StringPtr> {
    KJ_IF_MAYBE(found, variables.find(name)) {
      if (found->size() > 0) return kj::StringPtr(*found);
    }
    return nullptr;
  };
  auto text = [&](kj::StringPtr name) { return kj::str(value(name).orDefault("")); };
  runner::ClusterConfig cluster{};
  cluster.servers = choice & 3;
  cluster.workers = (choice >> 2 & 3) + 1;
  cluster.serversPerProcess = 1;
  runner::RoleClues clues{value,
      {text("--ps_hosts"), text("--worker_hosts"), text("--job_name"), text("--task_index")},
      cluster, (choice & 64) != 0};
  refusalOf([&]() { runner::findRole(clues); });
  refusalOf([&]() { runner::indexOfPod(runner::Role::WORKER, clues); });
  rpc::Secret::parse(text("SECRET"));
  fileOf("address", kj::str(text(ADDRESS_FILE), "\n", text("SECRET"), "\n").asBytes());
  runner::readAddressFile(runner::RunFolder{kj::str(folder())});
}

}  // namespace fuzz
