// configs/language/utf8_locale.h: a locale in which the C library reads text as UTF-8.
#pragma once

#include <kj/common.h>
#include <locale.h>

namespace configs {

// In the "C" locale, which the program otherwise keeps, the C library knows no character beyond
// ASCII. This one changes what characters are, and nothing else: numbers stay as they are.
class Utf8Locale {
public:
  Utf8Locale();
  ~Utf8Locale() noexcept(false);
  KJ_DISALLOW_COPY(Utf8Locale);

  // False on a machine that has no such locale: a Scope then changes nothing.
  bool isThere() const { return locale != locale_t(0); }

  // Makes it the locale of this thread, and of no other, while it exists.
  class Scope {
  public:
    explicit Scope(const Utf8Locale& utf8): before(::uselocale(utf8.locale)) {}
    ~Scope() noexcept(false) { ::uselocale(before); }
    KJ_DISALLOW_COPY(Scope);

  private:
    locale_t before;
  };

private:
  locale_t locale = locale_t(0);
};

}  // namespace configs
