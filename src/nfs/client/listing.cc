#include "nfs/client/listing.h"

#include <algorithm>

#include "nfs/client/protocol/protocol.h"

namespace stag::nfs::client {
namespace {

constexpr OperationContext kListing{"list the directory", {}};
// No entry of 255 bytes of name needs more, whatever the server adds.
constexpr std::uint32_t kLargestReply = 1u << 20;
// Of one name, as an average; no file system known has longer ones.
constexpr std::uint64_t kNameBytes = 255;

// False for names that would lead elsewhere when a program makes local paths of them.
bool is_name(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

Listing::Listing(std::shared_ptr<Protocol> protocol, const Handle& directory, Detail detail,
                 std::uint32_t reply_size, std::uint64_t most)
    : protocol_(std::move(protocol)),
      directory_(directory),
      detail_(detail),
      reply_size_(reply_size),
      most_(most) {}

Task<Outcome<std::vector<Entry>>> Listing::next() {
  while (!ended_) {
    Outcome<ListedPart> part = co_await protocol_->list(kListing, directory_, {cookie_, verifier_},
                                                        detail_ == Detail::Attributes, reply_size_);
    if (part) {
      Outcome<std::vector<Entry>> batch = taken(*std::move(part));
      if (!batch) co_return Failure{batch.error()};
      if (!batch->empty()) co_return std::move(*batch);
      continue;
    }
    if (detail_ == Detail::Attributes && part.error().is(Status::NotSupported)) {
      detail_ = Detail::Names;
    } else if (part.error().is(Status::TooSmall) && reply_size_ < kLargestReply) {
      // One entry, or the overhead of the server, is larger than the size that was asked for.
      reply_size_ = std::min(reply_size_ * 2, kLargestReply);
    } else {
      co_return Failure{part.error()};
    }
  }
  co_return std::vector<Entry>{};
}

// One more entry; why the list cannot be one with an end.
std::optional<Error> Listing::count(std::uint64_t cookie, std::size_t name_size) {
  name_bytes_ += name_size;
  if (++entries_ > most_ || name_bytes_ > most_ * kNameBytes)
    return Error::of_protocol(kListing, "sent more than " + std::to_string(most_) +
                                            " entries, or names as long as so many");
  // Two neighbours may share a cookie: a hash of the name, on some servers.
  if (cookie == seen_ && cookie_ != cookie)
    return Error::of_protocol(kListing, "sent a list that goes in circles");
  if (entries_ == next_seen_) {
    seen_ = cookie;
    next_seen_ *= 2;
  }
  cookie_ = cookie;
  return std::nullopt;
}

Outcome<std::vector<Entry>> Listing::taken(ListedPart part) {
  ended_ = part.eof;
  // A listing that does not get on would never end.
  if (!ended_ && part.entries.empty())
    return Failure{Error::of_protocol(kListing, "sent no entries and no end of the list")};
  if (!part.entries.empty() && !ended_ && part.entries.back().cookie == cookie_)
    return Failure{Error::of_protocol(kListing, "sent the same entries again")};
  std::vector<Entry> batch;
  batch.reserve(part.entries.size());
  for (ListedEntry& listed : part.entries) {
    const std::string& name = listed.entry.name;
    if (const std::optional<Error> endless = count(listed.cookie, name.size()))
      return Failure{*endless};
    if (!is_name(name))
      return Failure{Error::of_protocol(kListing, "sent a name that cannot be one")};
    if (name != "." && name != "..") batch.push_back(std::move(listed.entry));
  }
  verifier_ = part.verifier;
  return batch;
}

}  // namespace stag::nfs::client
