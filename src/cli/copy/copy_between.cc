#include "cli/copy/copy_between.h"

#include <exception>
#include <utility>

namespace stag::cli {
namespace {

using nfs::client::CopySource;
using nfs::client::File;
using nfs::client::Url;

// What is shorter has arrived before the servers know of each other.
constexpr std::uint64_t kWorthAsking = std::uint64_t{4} << 20;

Task<Outcome<std::uint64_t>> copy_opened(Remote& from, File open, std::uint64_t size, Remote& to,
                                         nfs::client::Handle file, nfs::client::CopyWatch watch) {
  const Outcome<Address> reader = co_await to.numeric_address();
  if (!reader) co_return Failure{reader.error()};
  const Outcome<CopySource> source = co_await from.files().notify_copy(open, *reader);
  if (!source) co_return Failure{source.error()};
  co_return co_await to.files().copy_range(*source, {0, size}, file, 0, std::move(watch));
}

}  // namespace

// Between the servers nobody knows how the data travels: Kerberos, which the user asks for, does
// not go with it (RFC 7862 4.9.1 needs RPCSEC_GSS version 3).
bool may_copy_between(const Url& from, const Url& to) {
  const auto may = [](const Url& url) {
    return url.version == 4 && url.minor.value_or(0) >= 2 && url.security == Url::Security::Sys;
  };
  return may(from) && may(to);
}

// A server may fill holes when it copies.
bool is_worth_asking(const CopyObject& source) {
  return source.size >= kWorthAsking && source.used >= source.size;
}

// The leave ends with the open.
Task<Outcome<std::uint64_t>> copy_between(Remote& from, CopyObject source, Remote& to,
                                          nfs::client::Handle file, nfs::client::CopyWatch watch) {
  const auto opened = co_await from.files().open(source.handle, nfs::client::access::kRead);
  if (!opened) co_return Failure{opened.error()};
  Outcome<std::uint64_t> copied{std::uint64_t{0}};
  std::exception_ptr exception;
  try {
    copied = co_await copy_opened(from, opened->file, source.size, to, file, std::move(watch));
  } catch (...) {
    exception = std::current_exception();
  }
  static_cast<void>(co_await from.settling().close(opened->file));
  if (exception) std::rethrow_exception(exception);
  co_return copied;
}

}  // namespace stag::cli
