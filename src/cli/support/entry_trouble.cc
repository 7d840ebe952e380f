#include "cli/support/entry_trouble.h"

namespace stag::cli {

using nfs::client::Error;
using nfs::client::Status;

std::optional<Error> entry_trouble(const Error& error) {
  // It is the directory that is stale.
  if (error.kind != Error::Kind::Nfs || error.is(Status::Stale)) return std::nullopt;
  std::string sentence = error.sentence;
  // A server serves what is mounted there as an export of its own, or not at all.
  if (error.is(Status::Access)) sentence += ", and whether something is mounted there";
  return Error::of_local(std::move(sentence));
}

}  // namespace stag::cli
