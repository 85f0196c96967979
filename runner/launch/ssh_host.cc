#include "runner/launch/ssh_host.h"

#include <kj/debug.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "configs/language/failure.h"
#include "rpc/wire/running_time.h"
#include "runner/system/line_stream.h"
#include "runner/system/reason.h"
#include "runner/system/two_pipes.h"
#include "runner/text/shell_word.h"

namespace runner {

namespace {

// Runs on the host. It has no single quotes, so that any login shell can pass it on.
//
// It first writes an answer, because a host that is reached is not lost, however long it needs.
//
// If the host lacks an intact copy of the program, the script writes how many bytes of the tar the
// host has, and reads the rest. So an interrupted copy continues where it ended. A damaged copy is
// sent again, once.
//
// The lock is for several launchers, and for hosts that share the folder: one of them copies, and
// the others wait, and write how many bytes of the tar are there. Without locks, each writes a
// separate tar. The first complete program stays, because mv -T does not replace a folder.
constexpr kj::StringPtr SCRIPT =
    "h=HASH;"
    "echo;echo \"runner: reached\";"
    "d=\"${XDG_CACHE_HOME:-$HOME/.cache}/runner/programs\";"
    "p=\"$d/$h\";"
    "t=\"$p.tar\";"
    "whole(){ [ -x \"$p/runner\" ]&&\"$p/runner\" host --check </dev/null >/dev/null 2>&1;};"
    "if ! whole;then "
    "mkdir -p \"$d\"||exit 1;"
    "exec 9>>\"$d.lock\";"
    "until flock -n 9 2>/dev/null;do "
    "if [ $? != 1 ];then t=\"$p.$(uname -n).$$.tar\";break;fi;"
    "echo;echo \"runner: waiting $(du -sk \"$d\" 2>/dev/null) $(wc -c 2>/dev/null <\"$t\")\";sleep "
    "1;"
    "done;"
    "damaged=0;copied=0;"
    "until [ $copied = 1 ]||whole;do "
    "if [ -e \"$p\" ];then echo;echo \"runner: changed\";fi;"
    "touch \"$t\"||exit 1;"
    "b=$(wc -c <\"$t\");"
    "echo;echo \"runner: send $b $(uname -m)\";"
    "read n||exit 1;"
    "head -c \"$n\" >>\"$t\"||exit 1;"
    "if [ \"$(wc -c <\"$t\")\" != $((b+n)) ];then exit 1;fi;"
    "if [ \"$(sha256sum <\"$t\"|cut -d\" \" -f1)\" = $h ];then "
    "rm -rf \"$t.new\";"
    "mkdir \"$t.new\"&&tar -xf \"$t\" -C \"$t.new\"||exit 1;"
    "put(){ mv -T \"$t.new\" \"$p\" 2>/dev/null||whole;};"
    "whole||put||{ rm -rf \"$p\";put||exit 1;};rm -rf \"$t.new\";"
    "if [ ! -x \"$p/runner\" ];then echo \"runner: not executable\" >&2;exit 1;fi;"
    "copied=1;"
    "else "
    "rm -f \"$t\";"
    "if [ $damaged = 1 ];then echo \"runner: damaged\" >&2;exit 1;fi;"
    "damaged=1;"
    "fi;"
    "done;"
    "rm -f \"$t\";exec 9>&-;"
    "fi;"
    "exec \"$p/runner\" host"_kj;

// Begins each line of the host's answers.
constexpr kj::StringPtr ANSWER = "runner: "_kj;
constexpr kj::StringPtr READY = "ready"_kj;
constexpr kj::StringPtr SEND = "send "_kj;
constexpr kj::StringPtr WAITING = "waiting"_kj;
constexpr kj::StringPtr CHANGED = "changed"_kj;

// The most that a login script may write before the first answer.
constexpr size_t NOISE_MAX_BYTES = 1 << 20;
constexpr size_t LINES_KEPT = 20;
constexpr uint CONNECT_TIMEOUT_S = 10;

kj::Array<kj::String> wordsOf(kj::StringPtr command) {
  return KJ_ASSERT_NONNULL(wordsOfShell(command));  // ClusterConfig has checked it
}

kj::Array<kj::String> argumentsOf(const Host& host, kj::StringPtr command, kj::StringPtr script) {
  kj::Vector<kj::String> words;
  for (auto& word: wordsOf(command)) words.add(kj::mv(word));
  auto option = [&](auto&&... text) {
    words.add(kj::str("-o"));
    words.add(kj::str(text...));
  };
  words.add(kj::str("-T"));
  // ssh must never wait for keyboard input.
  option("BatchMode=yes");
  option("ConnectTimeout=", CONNECT_TIMEOUT_S);
  // This connection must not be the master of others: the other runs and the user's sessions would
  // end with it. It may still use a master that the user has opened.
  option("ControlMaster=no");
  if (host.sshPort != 0) option("Port=", host.sshPort);
  if (host.user.size() > 0) option("User=", host.user);
  words.add(kj::str("--"));
  words.add(kj::str(host.name));
  words.add(kj::str("exec sh -c '", script, "'"));
  return words.releaseAsArray();
}

kj::String scriptFor(kj::StringPtr sha256) {
  auto at = KJ_ASSERT_NONNULL(SCRIPT.findFirst('H'));
  return kj::str(SCRIPT.slice(0, at), sha256, SCRIPT.slice(at + 4));
}

bool contains(kj::StringPtr text, kj::StringPtr word) {
  return ::strstr(text.cStr(), word.cStr()) != nullptr;
}

// The meaning of a line: a cause, and what to do.
struct Meaning {
  kj::StringPtr words;
  kj::StringPtr sentence;  // HOST stands for the host
};

constexpr Meaning MEANINGS[] = {
    {"Could not resolve hostname"_kj,
        "no machine of this name is known; correct cluster.hosts, or add the name to /etc/hosts or "
        "~/.ssh/config"_kj},
    {"Connection refused"_kj,
        "nothing listens on its ssh port; start sshd there, or name another port in cluster.hosts "
        "(HOST:2222)"_kj},
    {"No route to host"_kj, "there is no route to it; check that it is on, and in this network"_kj},
    {"Network is unreachable"_kj,
        "there is no route to it; check that it is on, and in this network"_kj},
    {"Connection timed out"_kj,
        "it does not answer; check that it is on, and that no firewall drops what goes to its ssh "
        "port"_kj},
    {"HOST IDENTIFICATION HAS CHANGED"_kj,
        "its host key has changed; if that is right, forget the old one: ssh-keygen -R HOST"_kj},
    {"Host key verification failed"_kj,
        "its host key is not known here; connect once by hand: ssh HOST"_kj},
    {"Permission denied ("_kj,
        "it accepts none of this user's keys; copy one there: ssh-copy-id HOST"_kj},
    {"version `GLIBC_"_kj,
        "its glibc is older than this program needs; build the program on the older system"_kj},
    {"Exec format error"_kj, "its processor is of another kind; use hosts of one kind"_kj},
    {"runner: not executable"_kj,
        "its ~/.cache is on a file system from which nothing can be executed (noexec); choose "
        "another folder there with XDG_CACHE_HOME"_kj},
    {"runner: damaged"_kj,
        "the copy of this program arrived damaged twice; check the disk of HOST"_kj},
    {"No space left on device"_kj,
        "its disk is full; make room in ~/.cache there, or set XDG_CACHE_HOME"_kj},
};

kj::Maybe<kj::String> explain(const Meaning& meaning, kj::StringPtr host, kj::StringPtr line) {
  if (!contains(line, meaning.words)) return nullptr;
  auto sentence = kj::str(meaning.sentence);
  if (auto place = ::strstr(sentence.cStr(), "HOST")) {
    size_t at = place - sentence.cStr();
    sentence = kj::str(sentence.slice(0, at), host, sentence.slice(at + 4));
  }
  // The line may be about another host, such as a jump host.
  return kj::str(sentence, " (", line, ")");
}

}  // namespace

kj::StringPtr SharedPackage::sha256() {
  if (sum.size() == 0) sum = package.sha256();
  return sum;
}

kj::ArrayPtr<const kj::byte> SharedPackage::bytes() {
  if (tar.size() == 0) tar = package.bytes();
  return tar;
}

kj::Maybe<kj::String> explainSshLine(kj::StringPtr host, kj::StringPtr line) {
  for (auto& meaning: MEANINGS) {
    KJ_IF_MAYBE(sentence, explain(meaning, host, line)) return kj::mv(*sentence);
  }
  return nullptr;
}

kj::String explainSsh(
    const Host& host, kj::StringPtr command, kj::ArrayPtr<const kj::String> lines) {
  for (auto& meaning: MEANINGS) {
    for (auto& line: lines) {
      KJ_IF_MAYBE(sentence, explain(meaning, host.name, line)) return kj::mv(*sentence);
    }
  }
  constexpr kj::StringPtr OURS = "error: "_kj;
  for (auto& line: lines) {
    if (line.startsWith(OURS)) return kj::str(line.slice(OURS.size()));
  }
  auto said = lines.size() == 0 ? kj::str("ssh ended without a message") : kj::str(lines.back());
  auto port = host.sshPort == 0 ? kj::str() : kj::str("-p ", host.sshPort, " ");
  auto user = host.user.size() == 0 ? kj::str() : kj::str(host.user, "@");
  return kj::str(said, "; try `", command, " ", port, user, host.name,
      "` by hand, and remove ~/.cache/runner/programs there if it works");
}

kj::Promise<kj::String> HostAnswers::next() {
  // Reads byte by byte, because the bytes after the line belong to the protocol.
  return output.tryRead(&nextByte, 1, 1).then([this](size_t n) -> kj::Promise<kj::String> {
    if (n == 0) return kj::NEVER_DONE;
    if (nextByte != '\n') {
      line.add(nextByte);
      if (++noise_bytes < NOISE_MAX_BYTES) return next();
      configs::fail(
          "its login script prints too much; it must print nothing in non-interactive shells");
    }
    auto text = kj::heapString(line.begin(), line.size());
    line.clear();
    if (text.startsWith(ANSWER)) return kj::heapString(text.slice(ANSWER.size()));
    hear(text);
    return next();
  });
}

SshHost::SshHost(const Host& host, kj::String label, kj::StringPtr command, SharedPackage& package,
    kj::AsyncIoContext& io, kj::Function<void(kj::StringPtr)> say)
    : host(host),
      label(kj::mv(label)),
      command(kj::str(command)),
      package(package),
      io(io),
      say(kj::mv(say)),
      running(io.provider->getTimer()),
      script(scriptFor(package.sha256())),
      process(kj::str("ssh to ", host.name), kj::StringPtr(wordsOf(command)[0]),
          argumentsOf(host, command, script), "", *io.lowLevelProvider, io.unixEventPort),
      listening(readLines(*process.errors,
          [this](kj::StringPtr line) {
            if (isReady) return this->say(kj::str(this->host.name, ": ", line));
            hear(line);
          }).eagerlyEvaluate(nullptr)),
      answers(*process.output, [this](kj::StringPtr line) { hear(line); }),
      whenEnded(process.ended().fork()) {}

kj::Exception SshHost::failed(kj::StringPtr why) const {
  return kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::str(label, ": ", why));
}

void SshHost::hear(kj::StringPtr line) {
  // ssh ends its lines as terminals do.
  auto text = kj::str(line.endsWith("\r") ? line.slice(0, line.size() - 1) : line.asArray());
  // From `ssh -v`.
  if (text.size() == 0 || text.startsWith("debug")) return;
  heard.add(kj::mv(text));
  if (heard.size() == 2 * LINES_KEPT) {
    for (size_t i = 0; i < LINES_KEPT; i++) heard[i] = kj::mv(heard[i + LINES_KEPT]);
    heard.truncate(LINES_KEPT);
  }
}

kj::Promise<void> SshHost::send(kj::StringPtr offer) {
  // "BYTES MACHINE"
  char* end;
  auto present_bytes = ::strtoull(offer.cStr(), &end, 10);
  kj::StringPtr machine = *end == ' ' ? end + 1 : end;
  struct utsname here;
  KJ_SYSCALL(::uname(&here));
  if (machine != here.machine) {
    return failed(kj::str("its processor is of another kind (", machine,
        ", and this program "
        "is for ",
        here.machine, "); use hosts of one kind"));
  }
  auto all = package.bytes();
  auto rest = all.slice(kj::min(present_bytes, all.size()), all.size());
  say(kj::str("copying this program to ", host.name, " (", rest.size() >> 20, " MiB)"));
  auto count = kj::str(rest.size(), "\n");
  return process.input->write(count.begin(), count.size())
      .attach(kj::mv(count))
      .then([this, rest]() { return write(rest); })
      // The host's own messages explain better why it no longer reads.
      .catch_([](kj::Exception&&) -> kj::Promise<void> { return kj::NEVER_DONE; });
}

kj::Promise<void> SshHost::write(kj::ArrayPtr<const kj::byte> bytes) {
  constexpr size_t PIECE_BYTES = 1 << 20;
  lastHeard = running.passed();
  if (bytes.size() == 0) return kj::READY_NOW;
  size_t size = kj::min(bytes.size(), PIECE_BYTES);
  return process.input->write(bytes.begin(), size).then([this, bytes, size]() {
    return write(bytes.slice(size, bytes.size()));
  });
}

kj::Promise<void> SshHost::greet() {
  auto next = answers.next().catch_(
      [this](kj::Exception&& e) -> kj::Promise<kj::String> { return failed(reasonOf(e)); });
  return next.then([this](kj::String answer) -> kj::Promise<void> {
    // A host that waits for a copy that makes no progress would wait for ever.
    if (answer != lastAnswer) lastHeard = running.passed();
    answered = true;
    if (answer == READY) return kj::READY_NOW;
    if (answer.startsWith(WAITING) && !lastAnswer.startsWith(WAITING)) {
      say(kj::str(host.name, " waits while another process copies this program to its folder"));
    }
    lastAnswer = kj::str(answer);
    if (answer == CHANGED) {
      say(kj::str("the copy of this program on ", host.name,
          " has changed or does not start, so it is copied again"));
    }
    if (!answer.startsWith(SEND)) return greet();
    auto sent = send(answer.slice(SEND.size()));
    return sent.attach(kj::mv(answer)).then([this]() { return greet(); });
  });
}

kj::Promise<void> SshHost::ready(uint timeout_s) {
  auto ended = whenEnded.addBranch().then([this](int) {
    return listening.then(
        [this]() { kj::throwFatalException(failed(explainSsh(host, command, heard))); });
  });
  return greet().exclusiveJoin(kj::mv(ended)).exclusiveJoin(late(timeout_s)).then([this]() {
    isReady = true;
    peer = kj::heap<rpc::Peer>(
        joinPipes(kj::mv(process.output), kj::mv(process.input)), rpc::MessageLimits());
  });
}

kj::Promise<void> SshHost::late(uint timeout_s) {
  auto look = io.provider->getTimer().afterDelay(rpc::RunningTime::LOOK_INTERVAL);
  return look.then([this, timeout_s]() -> kj::Promise<void> {
    if (running.passed() - lastHeard <= timeout_s * kj::SECONDS) return late(timeout_s);
    if (lastAnswer.startsWith(WAITING)) {
      return failed(kj::str("it waits for another process that copies this program to its folder ",
          "~/.cache/runner/programs, but has copied nothing for ", timeout_s,
          " s (cluster.start_timeout_s). End that process: `fuser ~/.cache/runner/programs.lock` ",
          "names it"));
    }
    return failed(kj::str("it has not answered within ", timeout_s,
        " s; is the machine or the "
        "network overloaded? (cluster.start_timeout_s)"));
  });
}

HostAgent::Client SshHost::agent() {
  return KJ_ASSERT_NONNULL(peer)->bootstrap().castAs<HostAgent>();
}

kj::Promise<void> SshHost::broken() {
  return whenEnded.addBranch().then([this](int) {
    kj::throwFatalException(
        failed("its ssh connection has ended; see whether the machine or the network failed"));
  });
}

}  // namespace runner
