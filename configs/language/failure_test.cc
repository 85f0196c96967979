#include "configs/language/failure.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

namespace configs {
namespace {

TEST_CASE("fail: the description of the exception is the sentence and nothing else") {
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([]() { fail("reading ", 3, " files"); })) {
    CHECK(exception->getType() == kj::Exception::Type::FAILED);
    CHECK(exception->getDescription() == "reading 3 files");
  } else {
    FAIL("it did not throw");
  }
}

}  // namespace
}  // namespace configs
