#include "configs/language/failure.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

namespace configs {
namespace {

TEST_CASE("fail: the description is the sentence, and nothing around it") {
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([]() { fail("reading ", 3, " files"); })) {
    CHECK(exception->getType() == kj::Exception::Type::FAILED);
    CHECK(exception->getDescription() == "reading 3 files");
  } else {
    FAIL("it did not throw");
  }
}

}  // namespace
}  // namespace configs
