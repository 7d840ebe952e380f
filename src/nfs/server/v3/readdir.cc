// READDIR and READDIRPLUS (RFC 1813 3.3.16, 3.3.17). Sizes are counted as they will be encoded:
// `count` and `maxcount` bound the whole resok structure "including all XDR overhead", `dircount`
// only file ids, names and cookies. A Reply for which the transport has less space is shorter.
#include <algorithm>

#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

namespace {

constexpr std::uint64_t kAttributes = 84;
// Attributes of the directory, cookie verifier, end of the list, eof.
constexpr std::uint64_t kEmptyList = 4 + kAttributes + 8 + 4 + 4;

std::uint64_t opaque_size(std::size_t length) {
  return 4 + length + xdr_pad(length);
}
// File id, name and cookie.
std::uint64_t directory_information(std::string_view name) {
  return 8 + opaque_size(name.size()) + 8;
}

// How much fits, and whether something did not.
class Room {
 public:
  explicit Room(std::uint64_t bytes) : left_(bytes) {}
  bool take(std::uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  std::uint64_t left_;
};

class PlainSink final : public vfs::DirectorySink {
 public:
  PlainSink(std::vector<v3::entry3>& entries, std::uint64_t bytes)
      : entries_(entries), room_(bytes) {}

  bool entry(const vfs::DirectoryEntry& entry) override {
    if (!room_.take(4 + directory_information(entry.name))) return full_ = true, false;
    entries_.push_back({entry.file_id, std::string(entry.name), entry.cookie});
    return true;
  }
  bool full() const { return full_; }

 private:
  std::vector<v3::entry3>& entries_;
  Room room_;
  bool full_ = false;
};

class PlusSink final : public vfs::DirectorySink {
 public:
  PlusSink(const Request& request, const ExportObject& directory,
           std::vector<v3::entryplus3>& entries, std::uint64_t bytes, std::uint64_t information)
      : request_(request),
        directory_(directory),
        entries_(entries),
        room_(bytes),
        information_(information) {}

  bool entry(const vfs::DirectoryEntry& entry) override {
    v3::entryplus3 made{entry.file_id, std::string(entry.name), entry.cookie, {}, {}};
    std::uint64_t size = 4 + directory_information(entry.name) + 4 + 4;
    if (entry.node != nullptr) {
      made.name_attributes = to_post_op_attr(entry.node->attributes);
      made.name_handle = request_.post_op_fh(directory_, entry.node->handle);
      size += kAttributes + opaque_size(made.name_handle.handle().data.size());
    }
    // A dircount too small for the first entry must not keep the client from going on.
    const bool wanted = information_.take(directory_information(entry.name)) || entries_.empty();
    if (!wanted || !room_.take(size)) return full_ = true, false;
    entries_.push_back(std::move(made));
    return true;
  }
  bool full() const { return full_; }

 private:
  const Request& request_;
  const ExportObject& directory_;
  std::vector<v3::entryplus3>& entries_;
  Room room_;
  Room information_;
  bool full_ = false;
};

vfs::ListFrom from_of(std::uint64_t cookie, const v3::cookieverf3& verifier, bool with_nodes,
                      std::uint64_t bytes) {
  vfs::ListFrom from;
  from.cookie = cookie;
  from.verifier = verifier;
  from.with_nodes = with_nodes;
  from.budget = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kMaxTransfer));
  return from;
}

// The bytes of `count` that are left for entries.
std::uint64_t room_for_entries(std::uint32_t count) {
  const std::uint64_t bytes = std::min(count, kMaxTransfer);
  return bytes < kEmptyList ? 0 : bytes - kEmptyList;
}

// The count of the client, or fewer bytes if its transport carries shorter Replies: a longer
// listing would reach the client as an error.
std::uint32_t limited(const Request& request, std::uint32_t count) {
  constexpr std::uint64_t kStatus = 4;
  const std::uint64_t space = std::max(request.results_max(), kStatus) - kStatus;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, space));
}

// `too_small`: the count of the client has no space for one entry.
template <class Res, class Entries>
Task<Res> answer_listing(const Request& request, const ExportObject& directory,
                         vfs::Outcome<vfs::Listed> listed, Entries entries, bool too_small) {
  Res res;
  if (listed && !too_small) {
    auto& ok = res.resok();
    ok.dir_attributes = to_post_op_attr(listed->directory);
    ok.cookieverf = listed->verifier;
    ok.reply.entries = std::move(entries);
    ok.reply.eof = listed->eof;
    co_return res;
  }
  res.status = listed ? v3::NFS3ERR_TOOSMALL : request.failure(listed.error());
  res.resfail().dir_attributes = co_await post_op_attributes(directory);
  co_return res;
}

}  // namespace

Task<v3::READDIR3res> readdir(Request request, v3::READDIR3args args) {
  const auto directory = co_await request.resolve(args.dir);
  if (!directory) co_return failed<v3::READDIR3res>(request.failure(directory.error()));
  std::vector<v3::entry3> entries;
  const std::uint32_t count = limited(request, args.count);
  const std::uint64_t bytes = room_for_entries(count);
  PlainSink sink(entries, bytes);
  const vfs::ListFrom from = from_of(args.cookie, args.cookieverf, false, bytes);
  const auto listed =
      co_await directory->store().list(directory->caller(), directory->handle, from, sink);
  const bool too_small = count < kEmptyList || (entries.empty() && sink.full());
  co_return co_await answer_listing<v3::READDIR3res>(request, *directory, listed,
                                                     std::move(entries), too_small);
}

Task<v3::READDIRPLUS3res> readdirplus(Request request, v3::READDIRPLUS3args args) {
  const auto directory = co_await request.resolve(args.dir);
  if (!directory) co_return failed<v3::READDIRPLUS3res>(request.failure(directory.error()));
  std::vector<v3::entryplus3> entries;
  const std::uint32_t count = limited(request, args.maxcount);
  const std::uint64_t bytes = room_for_entries(count);
  PlusSink sink(request, *directory, entries, bytes, args.dircount);
  const vfs::ListFrom from = from_of(args.cookie, args.cookieverf, true, bytes);
  const auto listed =
      co_await directory->store().list(directory->caller(), directory->handle, from, sink);
  const bool too_small = count < kEmptyList || (entries.empty() && sink.full());
  co_return co_await answer_listing<v3::READDIRPLUS3res>(request, *directory, listed,
                                                         std::move(entries), too_small);
}

}  // namespace stag::nfs::nfs3
