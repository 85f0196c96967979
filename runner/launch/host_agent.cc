#include "runner/launch/host_agent.h"

#include <fcntl.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/datasets/data_copy.h"
#include "rpc/wire/peer.h"
#include "rpc/wire/running_time.h"
#include "runner/launch/host.capnp.h"
#include "runner/launch/paced_sum.h"
#include "runner/system/child_process.h"
#include "runner/system/copied_program.h"
#include "runner/system/line_stream.h"
#include "runner/system/terminal.h"
#include "runner/system/two_pipes.h"

namespace runner {

namespace {

// The longest line in one message to the launcher: half of what rpc::MessageLimits allow.
constexpr size_t LINE_BYTES_MAX = 512 << 10;

class RoleProcessServer final: public RoleProcess::Server {
public:
  RoleProcessServer(kj::AsyncIoContext& io, kj::StringPtr name,
      kj::ArrayPtr<const kj::String> arguments, kj::StringPtr secret, Lines::Client errors)
      : process(name, nullptr, arguments, kj::str(secret, "\n"), *io.lowLevelProvider,
            io.unixEventPort),
        errors(kj::mv(errors)) {}

  kj::Promise<void> ended(EndedContext context) override {
    // Otherwise this call would keep the process alive after the launcher has dropped it.
    context.allowCancellation();
    return readLines(
        *process.errors, [this](kj::StringPtr line) { pass(line); },
        kj::Function<kj::Promise<void>()>([this]() { return passed(); }))
        .then([this]() { return passed(); })
        .then([this]() { return process.ended(); })
        .then([context](int status) mutable { context.getResults().setStatus(status); });
  }

private:
  // Sends a line of the role to the launcher, in pieces if it is long.
  void pass(kj::StringPtr line) {
    auto rest = line.asArray();
    do {
      auto piece = rest.slice(0, kj::min(rest.size(), LINE_BYTES_MAX));
      auto request = errors.takeRequest();
      ::memcpy(request.initLine(piece.size()).begin(), piece.begin(), piece.size());
      calls = calls.then([sent = request.send().ignoreResult()]() mutable { return kj::mv(sent); });
      rest = rest.slice(piece.size(), rest.size());
    } while (rest.size() > 0);
  }

  // Resolves when the launcher has taken all lines so far.
  kj::Promise<void> passed() {
    auto all = kj::mv(calls);
    calls = kj::READY_NOW;
    return all;
  }

  ChildProcess process;
  Lines::Client errors;
  kj::Promise<void> calls = kj::READY_NOW;  // of `errors`, in order
};

class DataCopyServer final: public DataCopy::Server {
public:
  // `heard` is called at each call. `timer` must outlive the object.
  DataCopyServer(kj::Own<io::DataCopy> copy, kj::Timer& timer, kj::Function<void()> heard)
      : copy(kj::mv(copy)), timer(timer), heard(kj::mv(heard)) {}

  kj::Promise<void> write(WriteContext context) override {
    heard();
    auto params = context.getParams();
    // Pieces that follow a failed one fail for the same reason.
    KJ_IF_MAYBE(e, failure) return kj::cp(*e);
    failure =
        kj::runCatchingExceptions([&]() { copy->append(params.getOffset(), params.getBytes()); });
    KJ_IF_MAYBE(e, failure) return kj::cp(*e);
    return kj::READY_NOW;
  }

  kj::Promise<void> finish(FinishContext context) override {
    heard();
    return pacedSum(*copy, timer).then([this, context](kj::String sum) mutable {
      if (sum != context.getParams().getSha256()) return copy->clear();
      copy->finish();
      context.getResults().setFolder(KJ_ASSERT_NONNULL(copy->find()));
    });
  }

private:
  kj::Own<io::DataCopy> copy;
  kj::Timer& timer;
  kj::Function<void()> heard;
  kj::Maybe<kj::Exception> failure;
};

class HostAgentServer final: public HostAgent::Server {
public:
  explicit HostAgentServer(kj::AsyncIoContext& io): io(io), running(io.provider->getTimer()) {}

  kj::Promise<void> prepare(PrepareContext context) override {
    lastHeard = running.passed();
    auto params = context.getParams();
    silence = params.getSilenceS() * kj::SECONDS;
    secret = kj::str(params.getSecret());
    // The host may lack the launcher's folder. Then only relative paths differ.
    (void)!::chdir(params.getFolder().cStr());
    // The roles read the experiment from memory, so that no file remains. They inherit the
    // descriptor.
    auto text = params.getExperiment();
    int fd;
    KJ_SYSCALL(fd = ::memfd_create("experiment.toml", 0));
    experiment = kj::AutoCloseFd(fd);
    kj::FdOutputStream(fd).write(text.begin(), text.size());
    // SSH_CONNECTION: address and port of the client, then of the server.
    kj::StringPtr connection =
        ::getenv("SSH_CONNECTION") == nullptr ? "" : ::getenv("SSH_CONNECTION");
    KJ_IF_MAYBE(space, connection.findFirst(' ')) {
      context.getResults().setCaller(kj::str(connection.slice(0, *space)));
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> start(StartContext context) override {
    lastHeard = running.passed();
    auto params = context.getParams();
    kj::Vector<kj::String> arguments;
    for (auto word: params.getArguments()) arguments.add(kj::str(word));
    arguments.add(
        kj::str("/proc/self/fd/", KJ_REQUIRE_NONNULL(experiment, "call prepare() first").get()));
    context.getResults().setProcess(
        kj::heap<RoleProcessServer>(io, params.getName(), arguments, secret, params.getErrors()));
    return kj::READY_NOW;
  }

  kj::Promise<void> beat(BeatContext) override {
    lastHeard = running.passed();
    return kj::READY_NOW;
  }

  kj::Promise<void> data(DataContext context) override {
    lastHeard = running.passed();
    auto params = context.getParams();
    auto files = KJ_MAP(file, params.getFiles()) {
      return io::PackedFile{kj::str(file.getName()), file.getBytes()};
    };
    auto copy = kj::heap<io::DataCopy>(params.getRecordsSha256(), params.getName(), kj::mv(files));
    return answer(context, kj::mv(copy));
  }

  // Resolves when the launcher has been silent for too long.
  kj::Promise<void> silent() {
    return io.provider->getTimer()
        .afterDelay(rpc::RunningTime::LOOK_INTERVAL)
        .then([this]() -> kj::Promise<void> {
          if (running.passed() - lastHeard > silence) return kj::READY_NOW;
          return silent();
        });
  }

private:
  // Answers how much of `copy` exists, once no other process writes it.
  kj::Promise<void> answer(DataContext context, kj::Own<io::DataCopy> copy) {
    constexpr auto PAUSE = 200 * kj::MILLISECONDS;
    auto results = context.getResults();
    KJ_IF_MAYBE(folder, copy->find()) {
      results.setFolder(*folder);
      return kj::READY_NOW;
    }
    auto& timer = io.provider->getTimer();
    if (!copy->takeLock()) {
      return timer.afterDelay(PAUSE).then(
          [this, context, copy = kj::mv(copy)]() mutable { return answer(context, kj::mv(copy)); });
    }
    // The process that had the lock may have completed the copy.
    KJ_IF_MAYBE(folder, copy->find()) {
      results.setFolder(*folder);
      return kj::READY_NOW;
    }
    copy->open();
    results.setPresentBytes(copy->present_bytes());
    auto heard = [this]() { lastHeard = running.passed(); };
    results.setCopy(kj::heap<DataCopyServer>(kj::mv(copy), timer, kj::mv(heard)));
    return kj::READY_NOW;
  }

  kj::AsyncIoContext& io;
  rpc::RunningTime running;
  kj::Duration lastHeard = 0 * kj::NANOSECONDS;
  kj::Duration silence = 60 * kj::SECONDS;  // until prepare()
  kj::String secret;
  kj::Maybe<kj::AutoCloseFd> experiment;
};

// Marks the copied program as used, now and every hour, so that nobody removes it while this
// process runs.
kj::Promise<void> noteUse(const CopiedProgram& program, kj::Timer& timer) {
  program.noteUse();
  return timer.afterDelay(1 * kj::HOURS).then([&program, &timer]() {
    return noteUse(program, timer);
  });
}

}  // namespace

bool isAsCopied() {
  KJ_IF_MAYBE(program, CopiedProgram::find()) return program->isUnchanged();
  return true;
}

HostAgent::Client newHostAgent(kj::AsyncIoContext& io) {
  return kj::heap<HostAgentServer>(io);
}

void serveHost() {
  for (int fd: {STDIN_FILENO, STDOUT_FILENO}) {
    struct stat about;
    KJ_SYSCALL(::fstat(fd, &about));
    if (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode) || ::isatty(fd)) continue;
    configs::fail("`runner host` talks to `runner run` over standard input and output, which are ",
        "not connected to it. `runner run` starts it by ssh (cluster.launcher = \"ssh\")");
  }
  auto io = kj::setupAsyncIo();
  // Nothing but the protocol may go to standard output.
  int in, out;
  KJ_SYSCALL(in = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  KJ_SYSCALL(out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  KJ_SYSCALL(::dup2(STDERR_FILENO, STDOUT_FILENO));
  auto stream = joinPipes(io.lowLevelProvider->wrapInputFd(
                              kj::AutoCloseFd(in), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC),
      io.lowLevelProvider->wrapOutputFd(
          kj::AutoCloseFd(out), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC));
  // The launcher waits for this line. Output of a login script may precede it, perhaps without a
  // newline.
  constexpr kj::StringPtr READY = "\nrunner: ready\n"_kj;
  stream->write(READY.begin(), READY.size()).wait(io.waitScope);
  auto host = kj::heap<HostAgentServer>(io);
  auto silent = host->silent().then([]() {
    tell(
        "error: `runner run` has sent nothing for cluster.silence_timeout_s, so the roles here "
        "end. "
        "Was it stopped, or could it not write its output (Ctrl-S, a pager)?");
  });
  auto program = CopiedProgram::find();
  kj::Promise<void> used = kj::READY_NOW;
  KJ_IF_MAYBE(copied, program) {
    used = noteUse(*copied, io.provider->getTimer()).eagerlyEvaluate(nullptr);
    copied->removeUnused();
  }
  rpc::serve(kj::mv(stream), {}, kj::mv(host)).exclusiveJoin(kj::mv(silent)).wait(io.waitScope);
}

}  // namespace runner
