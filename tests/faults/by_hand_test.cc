// Roles started by hand: their messages and files, and how they end when one of them fails, is
// killed, is stopped or never joins.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/faults/stranger.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

TEST_CASE("roles that never join are named when the time to start is over") {
  auto coordinator = startCoordinator("tests/faults/impatient.toml");
  auto server = startRole("tests/faults/impatient.toml", "server", 1, addressOf(*coordinator));
  auto ended = coordinator->wait();
  checkFailed(
      ended, {"not joined within 3 s: server 0, worker 0, worker 1;", "cluster.start_timeout_s"});
  // The role that waited for the others is not left behind.
  CHECK(server->wait(FAILS_WITHIN_S).exitCode == 75);
}

TEST_CASE("if a role that was refused is missing later, the message says why it was refused") {
  constexpr kj::StringPtr IMPATIENT = "tests/faults/impatient.toml"_kj;
  auto coordinator = startCoordinator(IMPATIENT, newFolder(), newSecretFile('a'));
  auto address = addressOf(*coordinator);
  auto other = startRole(IMPATIENT, "worker", 1, address, newSecretFile('b'));
  checkFailed(other->wait(FAILS_WITHIN_S), {"has a different secret"});
  checkFailed(coordinator->wait(),
      {"worker 1 (a connection from 127.0.0.1 was refused: it left without a proof, so it may have "
       "another secret); see why"});
}

TEST_CASE("if many roles never join, the message names the first few and counts all") {
  auto ended =
      startByHand({"tests/faults/impatient.toml", "--role", "coordinator", "--folder", newFolder(),
                      "--set", "data.batch_size=1", "--set", "cluster.workers=400"})
          ->wait();
  checkFailed(ended,
      {"not joined within 3 s: server 0, server 1, worker 0, worker 1, worker 2, … (402 roles in "
       "all);"});
}

TEST_CASE("a coordinator is refused in the folder of a run that still runs, or has ended") {
  auto folder = newFolder();
  auto first = startCoordinator(ENDLESS, folder);
  addressOf(*first);
  auto refuse = [&](kj::StringPtr why) {
    auto events = readFile(kj::str(folder, "/events.jsonl"));
    auto second = startCoordinator(ENDLESS, folder);
    checkFailed(second->wait(FAILS_WITHIN_S), {why});
    CHECK(readFile(kj::str(folder, "/events.jsonl")) == events);
  };
  refuse(kj::str("process ", first->pid(), " works in ", folder, "; wait until it has ended, or ",
      "choose another folder with --folder"));
  first->kill(SIGKILL);
  first->wait();
  refuse(kj::str(folder, " holds a run already"));
}

// All roles of ENDLESS.
struct JobByHand {
  explicit JobByHand(kj::StringPtr file): coordinator(startCoordinator(file, folder)) {
    address = addressOf(*coordinator);
    for (uint i = 0; i < 2; i++) {
      servers.add(startRole(file, "server", i, address));
      workers.add(startRole(file, "worker", i, address));
    }
  }

  kj::String failedEvent() {
    auto events = readFile(kj::str(folder, "/events.jsonl"));
    auto at = ::strstr(events.cStr(), "\"failed\"");
    return at == nullptr ? kj::str() : kj::str(at);
  }

  // The coordinator makes it.
  kj::String folder = kj::str(newFolder(), "/a/b");
  kj::Own<Command> coordinator;
  kj::String address;
  kj::Vector<kj::Own<Command>> servers;
  kj::Vector<kj::Own<Command>> workers;
};

// A file that is ENDLESS with `lines` after it.
kj::String endlessWith(kj::StringPtr lines) {
  auto file = kj::str(newFolder(), "/endless.toml");
  char path[PATH_MAX];
  KJ_REQUIRE(::realpath(ENDLESS.cStr(), path) != nullptr);
  writeFile(file, kj::str("extends = \"", path, "\"\n", lines));
  return file;
}

TEST_CASE("a job started by hand prints and writes the same as runner run") {
  auto launched = train(SHORT);
  JobByHand job(SHORT);
  auto ended = job.coordinator->wait();
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(
      ended.errors, kj::str("coordinator listens on ", job.address,
                        "; start the servers and workers with --coordinator ", job.address, "\n")));
  CHECK(ended.output.endsWith(
      kj::str("\nweights sha256=", launched.weightsSha256, "  ", job.folder, "\n")));
  CHECK(contains(ended.output, "Epoch[1] Validation-accuracy="));
  // It prints no events, which only launchers read.
  CHECK_FALSE(contains(ended.output, "{"));
  CHECK_FALSE(contains(ended.errors, "{"));
  CHECK(contains(ended.output, readFile(kj::str(job.folder, "/table.md"))));
  for (auto name: {"experiment.toml", "table.csv", "report.html", "weights.safetensors"}) {
    CHECK(readFile(kj::str(job.folder, "/", name)).size() > 0);
  }
  CHECK(readFile(kj::str(job.folder, "/experiment.toml")) ==
        readFile(kj::str(launched.folder, "/experiment.toml")));
  auto check = [&](Command& role, kj::StringPtr name) {
    auto ended = role.wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 0);
    CHECK(ended.output == "");
    CHECK(ended.errors.startsWith(kj::str(name, " joined the job at ", job.address, "\n")));
    CHECK(ended.errors.endsWith(kj::str(name, ": the job is done\n")));
    return kj::mv(ended.errors);
  };
  for (uint i = 0; i < 2; i++) {
    auto server = kj::str("server ", i), worker = kj::str("worker ", i);
    auto ofServer = check(*job.servers[i], server);
    auto ofWorker = check(*job.workers[i], worker);
    for (uint epoch: {1, 2}) {
      CHECK(contains(ofServer, kj::str("\n", server, ": epoch ", epoch, " is trained\n")));
      for (auto verb: {"trained"_kj, "validated"_kj}) {
        auto line = kj::str("\n", worker, ": epoch ", epoch, "/2 is ", verb, ": loss ");
        CHECK(contains(ofWorker, line));
      }
    }
  }
}

TEST_CASE("a role started by hand says which roles it waits for, and when all have joined") {
  auto coordinator = startCoordinator(ENDLESS);
  auto address = addressOf(*coordinator);
  auto server = startRole(ENDLESS, "server", 1, address);
  CHECK(server->waitForErrors("server 1 waits for server 0, worker 0, worker 1\n"));
  auto other = startRole(ENDLESS, "server", 0, address);
  auto first = startRole(ENDLESS, "worker", 0, address);
  auto second = startRole(ENDLESS, "worker", 1, address);
  CHECK(server->waitForErrors("server 1: all roles have joined\n"));
}

TEST_CASE("roles that are started before their coordinator wait for it") {
  auto launched = train(SHORT);
  auto place = ownPlace();
  kj::Vector<kj::Own<Command>> roles;
  for (auto kind: {"worker"_kj, "server"_kj}) {
    for (uint i: {1, 0}) {
      auto& role = roles.add(startRole(SHORT, kind, i, place));
      REQUIRE(role->waitForErrors(kj::str(
          kind, " ", i, " waits for the coordinator at ", place, " (Connection refused)\n")));
    }
  }
  auto ended =
      startByHand({SHORT, "--role", "coordinator", "--folder", newFolder(), "--listen", place})
          ->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, launched.weightsSha256));
  for (auto& role: roles) {
    auto ended = role->wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 0);
    CHECK(countOf(ended.errors, "waits for the coordinator") == 1);
  }
}

TEST_CASE("a role whose coordinator is never started ends after start_timeout_s and says so") {
  auto place = ownPlace();
  auto ended = startRole("tests/faults/impatient.toml", "server", 0, place)->wait(FAILS_WITHIN_S);
  INFO(ended.errors);
  CHECK(ended.exitCode == 75);
  CHECK(contains(ended.errors, kj::str("error: cannot reach the coordinator at ", place,
                                   ": Connection refused, for 3 s (cluster.start_timeout_s); ")));
}

TEST_CASE(
    "roles that are started with the same --set train the same weights as runner run with it") {
  constexpr kj::StringPtr SEED = "train.seed=2"_kj, ONE = "cluster.workers=1"_kj;
  auto launched = train(SHORT, {SEED, ONE, "cluster.servers=1"});
  auto start = [&](kj::ArrayPtr<const kj::StringPtr> options) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>(
        {SHORT, "--set", SEED, "--set", ONE, "--set", "cluster.servers=1", "--role"}));
    words.addAll(options);
    return startByHand(words);
  };
  auto coordinator = start({"coordinator", "--folder", newFolder()});
  auto address = addressOf(*coordinator);
  auto server = start({"server", "--coordinator", address});
  auto other = startRole(SHORT, "worker", 0, address);
  checkFailed(other->wait(FAILS_WITHIN_S),
      {"worker 0 was started with a different experiment file than the coordinator (",
          "train.seed is 1, not 2"});
  auto worker = start({"worker", "--coordinator", address});
  auto ended = coordinator->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, launched.weightsSha256));
}

TEST_CASE("a coordinator listens beyond its machine only with a secret") {
  auto folder = newFolder();
  auto ended = Command({RUNNER, "role", ENDLESS, "--role", "coordinator", "--folder", folder,
                           "--listen", "192.0.2.1:7000"})
                   .wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "other machines reach 192.0.2.1, so the roles need a secret: "));
}

TEST_CASE("a coordinator started by hand listens at cluster.interface") {
  auto coordinator = [](kj::StringPtr interface, kj::StringPtr folder) {
    return startByHand({ENDLESS, "--role", "coordinator", "--folder", folder, "--set",
        kj::str("cluster.interface=", interface)});
  };
  auto own = ownPlace();
  auto address = kj::heapString(own.slice(0, KJ_ASSERT_NONNULL(own.findFirst(':'))));
  auto started = coordinator(address, newFolder());
  CHECK(addressOf(*started).startsWith(kj::str(address, ":")));
  auto folder = kj::str(newFolder(), "/none");
  auto refused = coordinator("nothing0", folder)->wait(FAILS_WITHIN_S);
  INFO(refused.errors);
  CHECK(refused.exitCode == 2);
  CHECK(contains(refused.errors, "this machine has no interface `nothing0`"));
  CHECK(::access(folder.cStr(), F_OK) != 0);
}

TEST_CASE("a coordinator that cannot listen leaves no folder") {
  auto first = startCoordinator(ENDLESS);
  auto address = addressOf(*first);
  auto folder = kj::str(newFolder(), "/none");
  auto second =
      startByHand({ENDLESS, "--role", "coordinator", "--folder", folder, "--listen", address});
  checkFailed(second->wait(FAILS_WITHIN_S), {"cannot listen on ", "the port is in use"});
  CHECK(::access(folder.cStr(), F_OK) != 0);
}

TEST_CASE("an address that other hosts cannot reach is refused") {
  for (auto address: {"0.0.0.0", "0.0.0.0:7000", "::", "::0", "[::]:7000", "::ffff:10.0.0.4",
           "fe80::1", "node1", "node1:7000", "10.0.0.4:0", "10.0.0.4:7000-7001", "10.0.0"}) {
    auto ended = Command({RUNNER, "role", ENDLESS, "--role", "coordinator", "--folder", newFolder(),
                             "--listen", address})
                     .wait();
    INFO(address, ended.errors);
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, kj::str("`", address, "`")));
  }
}

TEST_CASE("a coordinator refuses --coordinator, and says which option to use") {
  auto ended = Command({RUNNER, "role", ENDLESS, "--role", "coordinator", "--folder", newFolder(),
                           "--coordinator", "192.0.2.2:7777"})
                   .wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors,
      "a coordinator takes no --coordinator ADDRESS: it listens on a free port of 127.0.0.1"));
}

TEST_CASE("a worker started by hand that fails tells the coordinator why, which records it") {
  JobByHand job(endlessWith("[data]\naugment = { deviation = [1e-300] }\n"));
  auto ended = job.coordinator->wait();
  checkFailed(
      ended, {"error: worker ", ": the loss is ", "before the first update of this worker"});
  CHECK(contains(job.failedEvent(), "\"failed\":{\"reason\":\"worker "));
  CHECK(contains(job.failedEvent(), ": the loss is "));
  for (auto& role: job.servers) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 75);
}

TEST_CASE("Ctrl-C of a role started by hand ends the job, which says so and names the role") {
  {
    JobByHand job(ENDLESS);
    REQUIRE(job.workers[1]->waitForErrors("worker 1: epoch 1/"));
    job.workers[1]->kill(SIGINT);
    auto worker = job.workers[1]->wait(FAILS_WITHIN_S);
    CHECK(worker.exitCode == 130);
    CHECK(worker.errors.endsWith("\ninterrupted\n"));
    checkFailed(job.coordinator->wait(), {"error: worker 1: interrupted: received SIGINT (Ctrl-C); "
                                          "a job needs all its roles, so start them all again"});
    CHECK(contains(job.failedEvent(), "worker 1: interrupted: received SIGINT"));
  }
  JobByHand job(ENDLESS);
  REQUIRE(job.workers[1]->waitForErrors("worker 1: epoch 1/"));
  job.servers[0]->kill(SIGTERM);
  CHECK(job.servers[0]->wait(FAILS_WITHIN_S).exitCode == 130);
  checkFailed(job.coordinator->wait(), {"error: server 0: interrupted: received SIGTERM"});
}

TEST_CASE("Ctrl-C ends a role that waits for its coordinator at once") {
  auto server = startRole(ENDLESS, "server", 0, ownPlace());
  REQUIRE(server->waitForErrors("waits for the coordinator"));
  server->kill(SIGINT);
  CHECK(server->wait(FAILS_WITHIN_S).exitCode == 130);
}

TEST_CASE("a worker started by hand whose data are missing tells the coordinator why") {
  auto file = endlessWith("[data]\nsource = \"/nowhere\"\n");
  auto coordinator = startCoordinator(file);
  auto address = addressOf(*coordinator);
  auto cache = kj::str("RUNNER_CACHE=", newFolder());
  kj::StringPtr environment[] = {cache};
  kj::StringPtr words[] = {RUNNER, "role", file, "--role", "worker", "--coordinator", address};
  Command worker(words, {.environment = environment});
  auto said = errorLines(worker.wait().errors);
  REQUIRE(said.size() == 1);
  CHECK(contains(said[0], "/nowhere"));
  auto cause = kj::str("error: worker 0: ", said[0].slice(7));
  checkFailed(coordinator->wait(FAILS_WITHIN_S), {cause});
}

TEST_CASE("if a role started by hand is killed, the coordinator says that it gave no reason") {
  JobByHand job(ENDLESS);
  // By then, every worker has reported a step.
  REQUIRE(job.coordinator->waitForOutput("Batch [20]"));
  job.workers[1]->kill(SIGKILL);
  auto ended = job.coordinator->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 1);
  constexpr kj::StringPtr CAUSE =
      "worker 1 closed its connection without giving a reason: it was killed or it crashed; "
      "last reported step: "_kj;
  CHECK(contains(ended.errors, kj::str("error: ", CAUSE)));
  CHECK(contains(job.failedEvent(), CAUSE));
}

TEST_CASE("a worker started by hand that is killed before all have joined is lost immediately") {
  // The loss must be noticed long before this time-out.
  auto file = endlessWith("[cluster]\nsilence_timeout_s = 600\n");
  auto coordinator = startCoordinator(file);
  auto worker = startRole(file, "worker", 0, addressOf(*coordinator));
  REQUIRE(worker->waitForErrors("worker 0 joined the job"));
  worker->kill(SIGKILL);
  checkFailed(coordinator->wait(FAILS_WITHIN_S),
      {"worker 0 closed its connection without giving a reason: it was killed or it crashed"});
}

TEST_CASE("Ctrl-C of a coordinator that was started by hand saves the run, and ends every role") {
  JobByHand job(ENDLESS);
  REQUIRE(job.coordinator->waitForOutput("Batch [20]"));
  job.coordinator->kill(SIGINT);
  auto ended = job.coordinator->wait(FAILS_WITHIN_S);
  INFO(ended.errors);
  CHECK(ended.exitCode == 130);
  CHECK(
      contains(ended.errors, "interrupted; the servers and workers lose the coordinator and end"));
  auto gone = kj::str("error: the coordinator at ", job.address, " is gone; ");
  auto check = [&](Command& role) {
    auto ended = role.wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 75);
    CHECK(contains(ended.errors, gone));
  };
  for (uint i = 0; i < 2; i++) {
    check(*job.servers[i]);
    check(*job.workers[i]);
  }
  CHECK(countOf(readFile(kj::str(job.folder, "/events.jsonl")), "\"saved\":{") == 1);
  constexpr kj::StringPtr REASON = "received SIGINT (Ctrl-C)"_kj;
  for (auto file: {"/events.jsonl", "/log.txt", "/table.md", "/report.html"}) {
    CHECK(contains(readFile(kj::str(job.folder, file)), REASON));
  }
}

TEST_CASE("a server and a worker that were started by hand end with 130 at Ctrl-C and SIGTERM") {
  for (int signal: {SIGINT, SIGTERM, SIGHUP}) {
    for (kj::StringPtr kind: {"server"_kj, "worker"_kj}) {
      CAPTURE(signal);
      CAPTURE(kind);
      auto job = startCoordinator(ENDLESS);
      auto role = startRole(ENDLESS, kind, 0, addressOf(*job));
      REQUIRE(role->waitForErrors(kj::str(kind, " 0 joined the job")));
      role->kill(signal);
      auto ended = role->wait(FAILS_WITHIN_S);
      INFO(ended.errors);
      CHECK(ended.exitCode == 130);
      CHECK(contains(ended.errors, "interrupted\n"));
      CHECK(job->wait(FAILS_WITHIN_S).exitCode == 1);
    }
  }
}

TEST_CASE("a worker that waits for others reports a lost coordinator, with exit code 75") {
  auto coordinator = startCoordinator(ENDLESS);
  auto address = addressOf(*coordinator);
  auto worker = startRole(ENDLESS, "worker", 0, address);
  REQUIRE(worker->waitForErrors("worker 0 joined the job"));
  coordinator->killGroup(SIGKILL);
  auto ended = worker->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 75);
  INFO(ended.errors);
  CHECK(contains(ended.errors, kj::str("error: the coordinator at ", address, " is gone")));
}

TEST_CASE("a role whose coordinator never answers ends after start_timeout_s and says so") {
  Stranger silent;
  auto place = kj::str("127.0.0.1:", silent.port);
  auto server = startRole("tests/faults/impatient.toml", "server", 0, place);
  auto call = silent.accept();
  auto ended = server->wait(FAILS_WITHIN_S);
  INFO(ended.errors);
  CHECK(ended.exitCode == 75);
  CHECK(contains(ended.errors,
      kj::str("error: the coordinator at ", place, " has not answered within 3 s; ")));
}

TEST_CASE("roles started by hand notice that their coordinator is stopped") {
  JobByHand job(endlessWith("[cluster]\nsilence_timeout_s = 2\n"));
  REQUIRE(job.coordinator->waitForOutput("Batch [20]"));
  job.coordinator->kill(SIGSTOP);
  auto check = [&](Command& role) {
    auto ended = role.wait(FAILS_WITHIN_S);
    INFO(ended.errors);
    CHECK(ended.exitCode == 75);
    CHECK(contains(ended.errors, kj::str("error: the coordinator at ", job.address)));
  };
  for (uint i = 0; i < 2; i++) {
    check(*job.servers[i]);
    check(*job.workers[i]);
  }
}

TEST_CASE("a worker that wakes up after the job has continued without it says so, and ends") {
  for (auto transport: {"auto", "tcp"}) {
    CAPTURE(transport);
    auto lines = kj::str("[cluster]\nsilence_timeout_s = 2\non_loss = \"continue\"\n",
        "[kvstore]\ntransport = \"", transport, "\"\n");
    JobByHand job(endlessWith(lines));
    REQUIRE(job.coordinator->waitForOutput("Batch [20]"));
    job.workers[1]->kill(SIGSTOP);
    REQUIRE(job.coordinator->waitForErrors("worker 1 was lost"));
    job.workers[1]->kill(SIGCONT);
    auto ended = job.workers[1]->wait(FAILS_WITHIN_S);
    INFO(ended.errors);
    CHECK(ended.exitCode != 0);
    CHECK(contains(ended.errors, "error: the job continues without"));
    CHECK_FALSE(contains(ended.errors, "could not be reached"));
    CHECK_FALSE(job.workers[0]->hasEnded());
  }
}

TEST_CASE("a role reports that the program at the address is not a coordinator") {
  Stranger web;
  auto place = kj::str("127.0.0.1:", web.port);
  auto worker = startRole(ENDLESS, "worker", 0, place);
  auto call = web.accept();
  constexpr char ANSWER[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  KJ_SYSCALL(::send(call, ANSWER, sizeof(ANSWER) - 1, MSG_NOSIGNAL));
  auto ended = worker->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 75);
  INFO(ended.errors);
  CHECK(contains(
      ended.errors, kj::str("error: the program at ", place, " is not a coordinator of runner")));
}

TEST_CASE("of two roles with the same index, the second is refused and told why") {
  auto coordinator = startCoordinator(ENDLESS);
  auto address = addressOf(*coordinator);
  auto first = startRole(ENDLESS, "server", 0, address);
  REQUIRE(first->waitForErrors("server 0 joined the job"));
  auto second = startRole(ENDLESS, "server", 0, address);
  checkFailed(second->wait(FAILS_WITHIN_S), {"server 0 has joined already", "--index"});
  auto beyond = startRole(ENDLESS, "worker", 2, address);
  auto refused = beyond->wait(FAILS_WITHIN_S);
  CHECK(refused.exitCode == 2);
  CHECK(
      contains(refused.errors, "there is no worker 2 in this job: it has 2 servers and 2 workers"));
  // The first one keeps its place.
  Process one[] = {{first->pid(), kj::str()}};
  CHECK_FALSE(haveEnded(one, 0));
}

TEST_CASE("a role that was started with a different file is refused and told why") {
  auto coordinator = startCoordinator(ENDLESS);
  auto role = startRole(SHORT, "worker", 0, addressOf(*coordinator));
  checkFailed(role->wait(FAILS_WITHIN_S), {"worker 0 was started with a different experiment file",
                                              "name is short, not endless", "same file"});
}

}  // namespace
}  // namespace tests
