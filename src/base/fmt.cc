// The one place where fmt's own code is compiled. Every other file sees its declarations only, which makes a full build
// three times quicker than fmt's header-only mode; the symbols stay hidden in libtutti.so all the same.
#ifndef FMT_HEADER_ONLY
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template locale_ref::locale_ref(const std::locale&);
template std::locale locale_ref::get<std::locale>() const;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template void buffer<char>::append(const char*, const char*);
#if FMT_VERSION < 100000
template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
#else
template void vformat_to(buffer<char>&, string_view, vformat_args<char>::type, locale_ref);
#endif

}  // namespace detail
FMT_END_NAMESPACE
#endif
