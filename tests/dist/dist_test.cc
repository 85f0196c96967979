// The packed programs in a root folder that has nothing but glibc, a shell and images.
#include <doctest/doctest.h>
#include <string.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr TAR = "runner/runner.tar.gz"_kj;
constexpr kj::StringPtr IMAGES = "/usr/share/datasets/fashion-mnist"_kj;

// The root has only glibc's libraries. It must not have libstdc++ or libgcc_s.
constexpr kj::StringPtr MAKE_ROOT = R"(
set -e
tar -xzf "$2" -C "$1"
cp "$3" "$1"
mkdir -p "$1/bin" "$1/lib64" "$1/proc" "$1/dev" "$1/tmp" "$1/usr/share/datasets"
cp -L /bin/sh "$1/bin"
cp -L /lib64/ld-linux-x86-64.so.2 "$1/lib64"
libraries=/lib/x86_64-linux-gnu
mkdir -p "$1$libraries"
for name in c m dl pthread rt resolv nss_files nss_dns; do
  cp -L "$libraries/lib$name.so."[0-9]* "$1$libraries"
done
cp -r "$4" "$1/usr/share/datasets"
)"_kj;

// A program finds itself by /proc. The root can have one only in a mount namespace.
constexpr kj::StringPtr ENTER = R"(
mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" &&
root=$1 && shift && exec env -i PATH=/bin RUNNER_CACHE=/cache /usr/sbin/chroot "$root" "$@"
)"_kj;

kj::String newRoot() {
  auto root = newFolder();
  Command command({"sh", "-c", MAKE_ROOT, "sh", root, TAR, "tests/dist/dense.toml", IMAGES});
  auto ended = command.wait();
  INFO(doctest::String(ended.errors.cStr()));
  REQUIRE(ended.exitCode == 0);
  return root;
}

Ended runIn(kj::StringPtr root, kj::ArrayPtr<const kj::StringPtr> words) {
  kj::Vector<kj::StringPtr> all;
  all.addAll(kj::ArrayPtr<const kj::StringPtr>(
      {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ENTER, "sh", root}));
  all.addAll(words);
  Command command(all);
  return command.wait();
}

TEST_CASE("the packed programs check, train and list devices on a system with only glibc") {
  if (::access(IMAGES.cStr(), R_OK) != 0) SKIP_CASE("no Fashion-MNIST here");
  auto root = newRoot();
  auto run = [&](std::initializer_list<kj::StringPtr> words) {
    auto ended = runIn(root, kj::arrayPtr(words.begin(), words.size()));
    INFO(doctest::String(ended.output.cStr()));
    INFO(doctest::String(ended.errors.cStr()));
    CHECK(ended.exitCode == 0);
    return kj::mv(ended.output);
  };
  // The root has been made correctly: it has no libstdc++ and no /usr/bin.
  CHECK(runIn(root, {"/runner/lib/libstdc++.so.6"}).exitCode != 0);
  CHECK(run({"/bin/sh", "-c", "echo /lib/*/*stdc++* /usr/bin*"}) == "/lib/*/*stdc++* /usr/bin*\n");

  auto file = "/runner/configs/fashion_mnist_dist_sync.toml"_kj;
  CHECK(run({"/runner/runner", "check", file}) == kj::str(file, ": fine\n"));
  CHECK(contains(run({"/runner/runner", "devices"}), "\ncuda"));
  auto trained = run({"/runner/runner", "run", "/dense.toml", "--runs", "/runs"});
  CHECK(contains(trained, "\nweights sha256="));
  run({"/runner/parse_log", "/runs/dense/1/log.txt"});
  for (auto program: {"/runner/bench", "/runner/pack_records", "/runner/check_test"}) {
    run({program, "--help"});
  }
}

TEST_CASE("verify.sh without a GPU gives the reason, also in its file, and ends with exit code 4") {
  auto root = newFolder(), results = newFolder();
  Command unpack({"tar", "-xzf", TAR, "-C", root});
  REQUIRE(unpack.wait().exitCode == 0);
  Command devices({kj::str(root, "/runner/runner"), "devices"});
  auto found = devices.wait().output;
  if (!contains(found, "\ncuda: ")) SKIP_CASE("there is a GPU here");
  auto why = kj::str(strstr(found.cStr(), "\ncuda: ") + strlen("\ncuda: "));
  why = kj::str("no GPU: nothing to verify (", why.slice(0, why.size() - 1), ')');

  auto script = kj::str(root, "/runner/tools/gpu/verify.sh");
  for (kj::StringPtr stage: {"check", "train", "peers", "cifar"}) {
    Command command({script, stage, results});
    auto ended = command.wait();
    CHECK(ended.exitCode == 4);
    CHECK(ended.output == kj::str(stage, ": ", why, "\n"));
    CHECK(readFile(kj::str(results, '/', stage, ".json"))
              .startsWith(kj::str(
                  "{\"stage\": \"", stage, "\", \"exit_code\": 4, \"outcome\": \"", why, "\", ")));
  }
  Command wrong({script, "chekc"});
  auto ended = wrong.wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "tools/gpu/verify.sh check|train|peers|cifar"));
}

}  // namespace
}  // namespace tests
