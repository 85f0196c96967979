#include "runner/launch/ssh_launcher.h"

#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "rpc/wire/running_time.h"
#include "runner/launch/data_sender.h"
#include "runner/launch/local_launcher.h"
#include "runner/launch/ssh_host.h"
#include "runner/logs/role_names.h"
#include "runner/system/addresses.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// The output of a role on a host. Lines may still arrive after the role was dropped.
struct RemoteReport: public kj::Refcounted {
  RemoteReport(kj::StringPtr name, RunView& view)
      : name(kj::str(name)), report(this->name, view, false) {}

  const kj::String name;
  RoleReport report;
};

class LinesServer final: public Lines::Server {
public:
  explicit LinesServer(kj::Own<RemoteReport> report): report(kj::mv(report)) {}

  kj::Promise<void> take(TakeContext context) override {
    report->report.take(context.getParams().getLine());
    return kj::READY_NOW;
  }

private:
  kj::Own<RemoteReport> report;
};

// By then, ssh has reached a host or given up: see ConnectTimeout in ssh_host.cc.
constexpr auto ALL_ANSWER_WITHIN = 11 * kj::SECONDS;

// A host, and whether it is still connected.
class WatchedHost {
public:
  WatchedHost(const LaunchedRun& run, const Host& host, kj::String label, SharedPackage& package)
      : run(run),
        running(run.io.provider->getTimer()),
        ssh(host, kj::mv(label), run.experiment().cluster.ssh, package, run.io,
            [&view = run.view](kj::StringPtr line) { view.say(line); }),
        lostPromise(nullptr) {}

  kj::String name() const { return ssh.host.toString(); }
  kj::StringPtr label() const { return ssh.label; }
  HostAgent::Client agent() { return ssh.agent(); }
  bool hasAnswered() const { return ssh.hasAnswered(); }

  // The address at which the host sees this machine (IPv6 in brackets). Empty if the host does not
  // know it.
  kj::String seen;
  bool isReady = false;  // for the next step of the launcher

  // Resolves when roles can be started on the host, and `seen` is known. Call once.
  kj::Promise<void> prepare() {
    return ssh.ready(run.experiment().cluster.startTimeout_s)
        .then([this]() {
          lostPromise = ssh.broken().exclusiveJoin(beat()).exclusiveJoin(watchSilence()).fork();
          auto request = agent().prepareRequest();
          request.setFolder(currentFolder());
          request.setExperiment(run.loaded.resolved);
          request.setSecret(run.secret.digits());
          request.setSilenceS(run.experiment().cluster.silenceTimeout_s);
          return orLost<capnp::Response<HostAgent::PrepareResults>>(request.send());
        })
        .then([this](capnp::Response<HostAgent::PrepareResults>&& answer) {
          auto caller = answer.getCaller();
          seen = isIpv6(caller) ? kj::str("[", caller, "]") : kj::str(caller);
        });
  }

  // Copies the packed records `data` to the host, unless it has them. Roles then open the records
  // in the folder copiedTo(). Calls `told` after each piece. Call once, after prepare().
  kj::Promise<void> bring(SharedData& data, kj::Function<void()> told) {
    auto sent = [this, &data, told = kj::mv(told)](uint64_t bytes) mutable {
      lastHeard = running.passed();
      if (sent_bytes == nullptr) {
        run.view.say(kj::str("copying the data set to ", name(), " (",
            (data.packed.size_bytes() - bytes) >> 20, " MiB)"));
      }
      sent_bytes = bytes;
      told();
    };
    sender = kj::heap<DataSender>(agent(), data, kj::mv(sent));
    return orLost<kj::String>(KJ_ASSERT_NONNULL(sender)->bring())
        .then([this](kj::String folder) { copy = kj::mv(folder); },
            [this](kj::Exception&& e) {
              auto reason = reasonOf(e);
              auto start = kj::str(ssh.label, ": ");
              if (reason.startsWith(start)) configs::fail(reason);
              configs::fail(start, "the data set cannot be copied to it: ", reason);
            });
  }
  // How many bytes of the data set the host has. Null if nothing is copied to it.
  kj::Maybe<uint64_t> sentBytes() const { return sent_bytes; }
  kj::StringPtr copiedTo() const { return copy; }

  // Returns the agent's `answer`. If the host is lost, it rejects with how that was noticed.
  template <typename T>
  kj::Promise<T> orLost(kj::Promise<T> answer) {
    auto known = answer.catch_([](kj::Exception&& e) -> kj::Promise<T> {
      if (e.getType() == kj::Exception::Type::DISCONNECTED) return kj::NEVER_DONE;
      return kj::mv(e);
    });
    return known.exclusiveJoin(
        lostPromise.addBranch().then([]() -> kj::Promise<T> { return kj::NEVER_DONE; }));
  }

private:
  kj::Duration silence() const { return run.experiment().cluster.silence(); }

  static kj::String currentFolder() {
    auto folder = ::getcwd(nullptr, 0);
    if (folder == nullptr) return kj::str();
    KJ_DEFER(::free(folder));
    return kj::str(folder);
  }

  kj::Promise<void> beat() {
    // The exit of ssh explains a broken connection better.
    return agent().beatRequest().send().then(
        [this](auto&&) {
          lastHeard = running.passed();
          auto pause = run.io.provider->getTimer().afterDelay(silence() / 5);
          return pause.then([this]() { return beat(); });
        },
        [](kj::Exception&&) -> kj::Promise<void> { return kj::NEVER_DONE; });
  }

  kj::Promise<void> watchSilence() {
    auto look = run.io.provider->getTimer().afterDelay(rpc::RunningTime::LOOK_INTERVAL);
    return look.then([this]() -> kj::Promise<void> {
      if (running.passed() - lastHeard <= silence()) return watchSilence();
      configs::fail(ssh.label, ": it has been silent for ", silence() / kj::SECONDS,
          " s; did the machine or the network to it fail? (cluster.silence_timeout_s)");
    });
  }

  const LaunchedRun& run;
  rpc::RunningTime running;
  kj::Duration lastHeard = 0 * kj::NANOSECONDS;  // by `running`
  SshHost ssh;
  kj::ForkedPromise<void> lostPromise;
  kj::Maybe<kj::Own<DataSender>> sender;
  kj::Maybe<uint64_t> sent_bytes;
  kj::String copy;
};

class RemoteRole final: public StartedGroup {
public:
  RemoteRole(
      const LaunchedRun& run, WatchedHost& host, kj::StringPtr name, const RoleOptions& options)
      : host(host), report(kj::refcounted<RemoteReport>(name, run.view)) {
    auto request = host.agent().startRequest();
    request.setName(name);
    auto words = commandOf(options);
    auto arguments = request.initArguments(words.size());
    for (size_t i: kj::indices(words)) arguments.set(i, words[i]);
    request.setErrors(kj::heap<LinesServer>(kj::addRef(*report)));
    process = request.send().getProcess();
  }

  kj::Promise<kj::Maybe<Failure>> ended() override {
    using Answer = capnp::Response<RoleProcess::EndedResults>;
    return host.orLost<Answer>(KJ_ASSERT_NONNULL(process).endedRequest().send())
        .then([this](Answer&& answer) { return report->report.judge(answer.getStatus()); })
        .catch_([](kj::Exception&& e) -> kj::Maybe<Failure> {
          return Failure{Failure::KILLED, reasonOf(e)};
        });
  }

private:
  WatchedHost& host;
  kj::Own<RemoteReport> report;
  kj::Maybe<RoleProcess::Client> process;  // dropping it ends the role
};

class SshLauncher final: public Launcher {
public:
  explicit SshLauncher(const LaunchedRun& run): run(run) {
    for (auto& host: run.experiment().cluster.hosts) {
      hosts.add(kj::heap<WatchedHost>(run, host, labelOf(host), package));
    }
  }

  kj::Promise<ListenPlace> prepare() override {
    begin = run.io.provider->getTimer().now();
    auto ready = onAllHosts([](WatchedHost& host) { return host.prepare(); });
    return ready.then([this]() {
      auto place = placeFor();
      return bringData().then([place = kj::mv(place)]() mutable { return kj::mv(place); });
    });
  }

  StartedCoordinator startCoordinator(ListenPlace place) override {
    return startCoordinatorHere(run, kj::mv(place));
  }

  kj::Array<RoleGroup> groups() const override {
    return groupsOnHosts(run.experiment().cluster, gone);
  }

  kj::Own<StartedGroup> start(const RoleGroup& group, kj::StringPtr coordinator) override {
    auto& first = group.roles[0];
    auto options = run.optionsOf(first.role, first.index, coordinator);
    if (first.role == Role::WORKER) options.workersBefore = first.workersBefore;
    for (auto& host: hosts) {
      if (host->name() == first.host) {
        if (run.options.copiesData) {
          options.data = CopiedData{kj::str(host->copiedTo()), kj::str(run.loaded.digest)};
        }
        return kj::heap<RemoteRole>(run, *host, group.name, options);
      }
    }
    KJ_UNREACHABLE;
  }

private:
  struct NotReady {
    kj::String host;
    kj::String reason;
  };

  // Calls `act` for all hosts in parallel. Rejects with all failures, unless other hosts can take
  // over the roles. A failure of one host does not hide those of others, and is not delayed by
  // copies to other hosts. But if other hosts can take over the roles, waits for each host that
  // has answered, however long it takes to get ready.
  kj::Promise<void> onAllHosts(kj::FunctionParam<kj::Promise<void>(WatchedHost&)> act) {
    auto someFailed = kj::newPromiseAndFulfiller<void>();
    firstFailed = kj::mv(someFailed.fulfiller);
    auto enough = someFailed.promise
                      .then([this]() {
                        return run.io.provider->getTimer().atTime(begin + ALL_ANSWER_WITHIN);
                      })
                      .fork();
    kj::Vector<kj::Promise<void>> all;
    for (auto& host: hosts) {
      host->isReady = false;
      auto noted = act(*host).then([&host = *host]() { host.isReady = true; },
          [this, &host = *host](kj::Exception&& e) {
            failures.add(NotReady{host.name(), reasonOf(e)});
            firstFailed->fulfill();
          });
      auto givenUp = enough.addBranch().then([this, &host = *host]() -> kj::Promise<void> {
        if (run.options.wasLost && host.hasAnswered()) return kj::NEVER_DONE;
        return kj::READY_NOW;
      });
      all.add(noted.exclusiveJoin(kj::mv(givenUp)).eagerlyEvaluate(nullptr));
    }
    return kj::joinPromises(all.releaseAsArray()).then([this]() {
      if (failures.size() == 0) return;
      if (!run.options.wasLost) reportFailures();
      leaveOut();
    });
  }

  // Continues with the hosts that are ready. They get the roles of the others.
  void leaveOut() {
    auto all = kj::mv(hosts);
    kj::Vector<kj::Own<WatchedHost>> others;
    for (auto& host: all) (host->isReady ? hosts : others).add(kj::mv(host));
    if (hosts.size() == 0) reportFailures();
    for (auto& host: others) gone.add(host->name());
    // The other hosts may have too few slots.
    auto notPlaced = kj::runCatchingExceptions([this]() { groups(); });
    for (auto& host: others) {
      kj::String why = kj::str(host->label(), ": it has not answered");
      for (auto& each: failures) {
        if (each.host == host->name()) why = kj::mv(each.reason);
      }
      run.view.say(notPlaced == nullptr ? kj::str(why, ". Its roles are started on other hosts")
                                        : kj::mv(why));
    }
    KJ_IF_MAYBE(e, notPlaced) kj::throwFatalException(kj::mv(*e));
    failures.clear();
  }

  kj::Promise<void> bringData() {
    if (!run.options.copiesData) return kj::READY_NOW;
    data = kj::heap<SharedData>(run.experiment().data, run.io.provider->getTimer());
    auto brought = onAllHosts([this](WatchedHost& host) {
      return host.bring(*KJ_ASSERT_NONNULL(data), [this]() { showCopies(); });
    });
    auto wait = run.io.provider->getTimer().afterDelay(2 * kj::SECONDS).then([this]() {
      for (auto& host: hosts) {
        if (host->sentBytes() != nullptr) return;
      }
      run.view.showWait("waiting for another run that copies the same data set to the hosts");
    });
    return brought.attach(
        kj::defer([this]() { run.view.showWait(""); }), wait.eagerlyEvaluate(nullptr));
  }

  // Shows how much of the data set each host has, the slowest first.
  void showCopies() const {
    constexpr size_t SHOWN = 4;
    struct Row {
      uint64_t bytes;
      kj::String host;
    };
    kj::Vector<Row> rows;
    for (auto& host: hosts) {
      KJ_IF_MAYBE(bytes, host->sentBytes()) rows.add(Row{*bytes, host->name()});
    }
    std::stable_sort(
        rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.bytes < b.bytes; });
    auto all = KJ_ASSERT_NONNULL(data)->packed.size_bytes() >> 20;
    auto texts = KJ_MAP(row, rows.asPtr().slice(0, kj::min(SHOWN, rows.size()))) {
      return kj::str(row.host, " ", row.bytes >> 20, " of ", all);
    };
    auto others = rows.size() - texts.size();
    run.view.showWait(kj::str("copying the data set, MiB: ", kj::strArray(texts, ", "),
        others == 0 ? kj::str() : kj::str(", ", others, " more")));
  }

  // Returns "host node2 (worker 1)", with the roles that run there.
  kj::String labelOf(const Host& host) const {
    auto name = host.toString();
    kj::Vector<kj::String> roles;
    for (auto& group: groups()) {
      for (auto& role: group.roles) {
        if (role.host == name) roles.add(roleName(role.role, role.index));
      }
    }
    if (roles.empty()) return kj::str("host ", name);
    return kj::str("host ", name, " (", roleList(roles), ")");
  }

  void reportFailures() const {
    if (failures.size() == 1) configs::fail(failures[0].reason);
    auto others = KJ_MAP(each, failures.slice(1, failures.size())) {
      return kj::str(each.host);
    };
    configs::fail(failures[0].reason, ". Other hosts are not ready either: ", roleList(others));
  }

  // Returns where the coordinator listens, so that all hosts reach it.
  ListenPlace placeFor() const {
    KJ_IF_MAYBE(word, run.experiment().cluster.interface) return {addressOfInterface(*word)};
    const WatchedHost* first = nullptr;
    for (auto& host: hosts) {
      // If the host is this machine, any address works.
      if (host->seen.size() == 0 || rpc::isLoopback(host->seen)) continue;
      if (first == nullptr) first = host.get();
      if (host->seen != first->seen) {
        configs::fail("host ", first->name(), " sees this machine as ", first->seen, ", and host ",
            host->name(), " as ", host->seen,
            "; set cluster.interface to an address that all hosts reach");
      }
    }
    if (first == nullptr) return {};
    if (whyNotOwn(first->seen) != nullptr) {
      configs::fail("host ", first->name(), " sees this machine as ", first->seen,
          ", which is not ",
          "an address of this machine (is there a jump host or a NAT between them?). Set ",
          "cluster.interface to an address of this machine that all hosts reach");
    }
    return {kj::str(first->seen)};
  }

  const LaunchedRun& run;
  SharedPackage package;
  kj::Maybe<kj::Own<SharedData>> data;  // null if nothing is copied
  kj::TimePoint begin = kj::origin<kj::TimePoint>();
  kj::Vector<NotReady> failures;
  kj::Vector<kj::String> gone;  // the hosts that this attempt leaves out
  kj::Own<kj::PromiseFulfiller<void>> firstFailed;
  kj::Vector<kj::Own<WatchedHost>> hosts;
};

}  // namespace

kj::Own<Launcher> newSshLauncher(const LaunchedRun& run) {
  return kj::heap<SshLauncher>(run);
}

}  // namespace runner
