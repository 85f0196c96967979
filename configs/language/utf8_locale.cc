#include "configs/language/utf8_locale.h"

namespace configs {

Utf8Locale::Utf8Locale() {
  for (auto name: {"C.UTF-8", "en_US.UTF-8"}) {
    if (locale == locale_t(0)) locale = ::newlocale(LC_CTYPE_MASK, name, locale_t(0));
  }
}

Utf8Locale::~Utf8Locale() noexcept(false) {
  if (locale != locale_t(0)) ::freelocale(locale);
}

}  // namespace configs
