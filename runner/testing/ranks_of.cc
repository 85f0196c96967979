#include "runner/testing/ranks_of.h"

#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <sys/stat.h>

#include "runner/system/files.h"
#include "tests/text.h"

namespace runner {

kj::String writeScript(const RunFolder& folder, kj::StringPtr name, kj::StringPtr commands) {
  auto path = kj::str(folder.path, "/", name);
  writeWhole(path, kj::str("#!/bin/sh\n", commands, "\n"));
  KJ_SYSCALL(::chmod(path.cStr(), 0700));
  return path;
}

kj::String ranksOf(const RunFolder& folder, kj::ArrayPtr<const kj::StringPtr> overrides,
    kj::FunctionParam<kj::Own<Launcher>(const LaunchedRun&)> make) {
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
  REQUIRE(loaded.errors == "");
  Said said;
  LaunchedRun run{loaded, folder, said, io};
  auto launcher = make(run);
  launcher->prepare().wait(io.waitScope);
  auto groups = launcher->groups();
  REQUIRE(groups.size() == 1);
  auto ranks = launcher->start(groups[0], "127.0.0.1:1");
  CHECK(ranks->ended().wait(io.waitScope) == nullptr);
  return kj::strArray(said.lines, "\n");
}

}  // namespace runner
