#include "nfs/client/listing.h"

#include <algorithm>

namespace stag::nfs::client {
namespace {

constexpr Doing kListing{"list the directory", {}};
// No entry of 255 bytes of name needs more, whatever the server adds.
constexpr std::uint32_t kLargestReply = 1u << 20;
// Of one name, as an average; no file system known has longer ones.
constexpr std::uint64_t kNameBytes = 255;

std::optional<Attributes> attributes_of(const v3::entryplus3& entry) {
  if (!entry.name_attributes.attributes_follow) return std::nullopt;
  return entry.name_attributes.attributes();
}

Entry to_entry(v3::entry3& entry) {
  return {std::move(entry.name), entry.fileid, std::nullopt, std::nullopt};
}
Entry to_entry(v3::entryplus3& entry) {
  Entry out{std::move(entry.name), entry.fileid, attributes_of(entry), std::nullopt};
  if (entry.name_handle.handle_follows) out.handle = entry.name_handle.handle();
  return out;
}

// Whoever makes local paths of names must not be led elsewhere by them.
bool is_name(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

Listing::Listing(const Caller& caller, const Handle& directory, Detail detail,
                 std::uint32_t reply_size, std::uint64_t most)
    : caller_(caller),
      directory_(directory),
      detail_(detail),
      reply_size_(reply_size),
      most_(most) {}

Task<Outcome<std::vector<Entry>>> Listing::next() {
  while (!ended_) {
    Outcome<std::vector<Entry>> batch = Failure{Error{}};
    if (detail_ == Detail::Attributes)
      batch = co_await plus();
    else
      batch = co_await plain();
    if (batch.ok()) {
      if (!batch->empty()) co_return std::move(*batch);
      continue;
    }
    if (detail_ == Detail::Attributes && batch.error().is(v3::NFS3ERR_NOTSUPP)) {
      detail_ = Detail::Names;
    } else if (batch.error().is(v3::NFS3ERR_TOOSMALL) && reply_size_ < kLargestReply) {
      // One entry, or the server's own overhead, is larger than what we offered.
      reply_size_ = std::min(reply_size_ * 2, kLargestReply);
    } else {
      co_return Failure{batch.error()};
    }
  }
  co_return std::vector<Entry>{};
}

Task<Outcome<std::vector<Entry>>> Listing::plain() {
  v3::READDIR3args args;
  args.dir = directory_;
  args.cookie = cookie_;
  args.cookieverf = verifier_;
  args.count = reply_size_;
  auto resok = co_await caller_.call<v3::NFSPROC3_READDIR>(args, kListing);
  if (!resok) co_return Failure{resok.error()};
  co_return taken(*resok);
}

Task<Outcome<std::vector<Entry>>> Listing::plus() {
  v3::READDIRPLUS3args args;
  args.dir = directory_;
  args.cookie = cookie_;
  args.cookieverf = verifier_;
  // dircount bounds names only; maxcount is what the reply may be.
  args.dircount = reply_size_;
  args.maxcount = reply_size_;
  auto resok = co_await caller_.call<v3::NFSPROC3_READDIRPLUS>(args, kListing);
  if (!resok) co_return Failure{resok.error()};
  co_return taken(*resok);
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

template <class Resok>
Outcome<std::vector<Entry>> Listing::taken(Resok& resok) {
  auto& entries = resok.reply.entries;
  ended_ = resok.reply.eof;
  // A listing that does not get on would never end.
  if (!ended_ && entries.empty())
    return Failure{Error::of_protocol(kListing, "sent no entries and no end of the list")};
  if (!entries.empty() && !ended_ && entries.back().cookie == cookie_)
    return Failure{Error::of_protocol(kListing, "sent the same entries again")};
  std::vector<Entry> batch;
  batch.reserve(entries.size());
  for (auto& entry : entries) {
    if (const std::optional<Error> endless = count(entry.cookie, entry.name.size()))
      return Failure{*endless};
    if (!is_name(entry.name))
      return Failure{Error::of_protocol(kListing, "sent a name that cannot be one")};
    if (entry.name != "." && entry.name != "..") batch.push_back(to_entry(entry));
  }
  verifier_ = resok.cookieverf;
  return batch;
}

}  // namespace stag::nfs::client
