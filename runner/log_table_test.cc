#include "runner/log_table.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

#include "tests/text.h"

namespace runner {
namespace {

constexpr kj::StringPtr EPOCH = "Node[0] Epoch[0] Train-accuracy=0.5\n"_kj;
constexpr kj::StringPtr AWS = "After 100 training steps (95 global steps)\n"_kj;
constexpr kj::StringPtr SCHLAG = "Test-Accuracy: 0.5\n"_kj;

kj::String csv(kj::StringPtr log, const TableOptions& options = {}) {
  return formatTable(textOf(readLogTable(log.asArray(), "x.log", options)), TableFormat::CSV);
}

kj::String complaint(kj::StringPtr log, const TableOptions& options = {}) {
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { csv(log, options); })) {
    return kj::str(exception->getDescription());
  }
  return nullptr;
}

TEST_CASE("what is found in a log decides which table it has") {
  CHECK(csv(EPOCH) == "epoch,train-accuracy,valid-accuracy,time\n1,0.500000,,\n");
  CHECK(csv(AWS) == "step,global step,loss,accuracy,s/batch\n100,95,,,\n");
  CHECK(csv(SCHLAG) == "step,global step,loss,accuracy,s/batch\n,,,0.5,\n");
  CHECK(complaint("").startsWith("no epoch lines found in x.log"));
}

TEST_CASE("a log is of one style") {
  CHECK(complaint(kj::str("hello\n", AWS, EPOCH)) ==
        "x.log holds lines of two styles: line 3 is of mxnet, and line 2 of tf_aws; make a file "
        "of each.");
  CHECK(complaint(kj::str(AWS, SCHLAG)) ==
        "x.log holds lines of two styles: line 1 is of tf_aws, and line 2 of schlag; make a file "
        "of each.");
}

TEST_CASE("what chooses epochs or runs is refused where there are steps") {
  TableOptions options;
  options.run = 1;
  CHECK(complaint(AWS, options) ==
        "x.log has a line a step: --epochs and --run choose in logs with a line an epoch; thin it "
        "with --every.");
  TableOptions every;
  every.every = 3;
  CHECK(csv(AWS, every) == "step,global step,loss,accuracy,s/batch\n");
}

}  // namespace
}  // namespace runner
