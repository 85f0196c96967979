// configs/language/utf8_locale.h: a locale in which the C library reads text as UTF-8.
#pragma once

#include <kj/common.h>
#include <locale.h>

namespace configs {

// The program runs in the "C" locale, in which the C library knows no character beyond ASCII. This
// locale changes only the set of characters. The format of numbers stays the same.
class Utf8Locale {
public:
  Utf8Locale();
  ~Utf8Locale() noexcept(false);
  KJ_DISALLOW_COPY(Utf8Locale);

  // False on a machine that has no such locale. A Scope then changes nothing.
  bool isThere() const { return locale != locale_t(0); }

  // Makes it the locale of this thread, and of no other thread, while the Scope exists.
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
