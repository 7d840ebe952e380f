// Attributes, data and facts: GETATTR, SETATTR, LOOKUP, READLINK, READ, WRITE, READDIR and STATFS
// (RFC 1094 2.2.2 to 2.2.9, 2.2.17, 2.2.18).
#include <algorithm>

#include "nfs/server/v2/procedures.h"

namespace stag::nfs::nfs2 {

namespace {

Task<v2::attrstat> attributes_of(const ExportObject& object) {
  const auto found = co_await object.store().attributes(object.caller(), object.handle);
  if (!found) co_return failed<v2::attrstat>(found.error());
  v2::attrstat res;
  res.attributes() = to_fattr(*found);
  co_return res;
}

// The attributes after a change, from the store if the change does not have them.
Task<v2::attrstat> after(const ExportObject& object, const vfs::Change& change) {
  if (!change.after) co_return co_await attributes_of(object);
  v2::attrstat res;
  res.attributes() = to_fattr(*change.after);
  co_return res;
}

}  // namespace

Task<v2::attrstat> getattr(Request request, v2::fhandle file) {
  const auto object = co_await request.resolve(file, Request::Security::Mounting);
  if (!object) co_return failed<v2::attrstat>(object.error());
  co_return co_await attributes_of(*object);
}

Task<v2::attrstat> setattr(Request request, v2::sattrargs args) {
  const auto object = co_await request.resolve(args.file);
  if (!object) co_return failed<v2::attrstat>(object.error());
  if (object->read_only()) co_return failed<v2::attrstat>(v2::NFSERR_ROFS);
  const auto changes = from_sattr(args.attributes);
  if (!changes) co_return failed<v2::attrstat>(changes.error());
  const auto touch = changes->size ? state::Touch::Size : state::Touch::Attributes;
  const Intent intent{.touch = touch, .changes = &*changes};
  const auto permitted = co_await request.permit(*object, intent);
  if (!permitted) co_return failed<v2::attrstat>(permitted.error());
  const auto changed = co_await object->store().set_attributes(object->caller(), object->handle,
                                                               *changes, std::nullopt);
  if (!changed) co_return failed<v2::attrstat>(changed.error());
  co_return co_await after(*object, *changed);
}

Task<v2::diropres> lookup(Request request, v2::diropargs args) {
  const auto directory = co_await request.resolve(args.dir);
  if (!directory) co_return failed<v2::diropres>(directory.error());
  const auto found =
      co_await directory->store().lookup(directory->caller(), directory->handle, args.name);
  if (!found) co_return failed<v2::diropres>(found.error());
  co_return request.found(*directory, found->node);
}

Task<v2::readlinkres> readlink(Request request, v2::fhandle link) {
  const auto object = co_await request.resolve(link);
  if (!object) co_return failed<v2::readlinkres>(object.error());
  auto found = co_await object->store().readlink(object->caller(), object->handle);
  if (!found) co_return failed<v2::readlinkres>(found.error());
  // Version 3 made it; half a path would lead elsewhere.
  if (found->target.size() > v2::MAXPATHLEN)
    co_return failed<v2::readlinkres>(v2::NFSERR_NAMETOOLONG);
  v2::readlinkres res;
  res.link().data = std::move(found->target);
  co_return res;
}

Task<v2::readres> read(Request request, v2::readargs args) {
  const auto object = co_await request.resolve(args.file);
  if (!object) co_return failed<v2::readres>(object.error());
  const auto permitted = co_await request.permit(*object, kToRead);
  if (!permitted) co_return failed<v2::readres>(permitted.error());
  auto found = co_await object->store().read(object->caller(), object->handle, args.offset,
                                             std::min(args.count, v2::MAXDATA));
  if (!found) co_return failed<v2::readres>(found.error());
  if (found->attributes.size > kMaxFileSize) co_return failed<v2::readres>(v2::NFSERR_FBIG);
  v2::readres res;
  res.reply() = {to_fattr(found->attributes), std::move(found->data)};
  co_return res;
}

Task<v2::attrstat> write(Request request, v2::writeargs args) {
  const auto object = co_await request.resolve(args.file);
  if (!object) co_return failed<v2::attrstat>(object.error());
  if (object->read_only()) co_return failed<v2::attrstat>(v2::NFSERR_ROFS);
  const std::size_t size = args.data.size();
  if (args.offset + std::uint64_t{size} > kMaxFileSize)
    co_return failed<v2::attrstat>(v2::NFSERR_FBIG);
  const auto permitted = co_await request.permit(*object, kToWrite);
  if (!permitted) co_return failed<v2::attrstat>(permitted.error());
  const auto written =
      co_await object->store().write(object->caller(), object->handle, args.offset,
                                     std::move(args.data), vfs::Stability::FileSync);
  if (!written) co_return failed<v2::attrstat>(written.error());
  // Version 2 cannot report a partial WRITE; the store ran full.
  if (written->count < size) co_return failed<v2::attrstat>(v2::NFSERR_NOSPC);
  co_return co_await after(*object, written->file);
}

Task<v2::statfsres> statfs(Request request, v2::fhandle file) {
  const auto object = co_await request.resolve(file, Request::Security::Mounting);
  if (!object) co_return failed<v2::statfsres>(object.error());
  // Fails with STALE when the object does not exist any more.
  const auto found = co_await object->store().attributes(object->caller(), object->handle);
  if (!found) co_return failed<v2::statfsres>(found.error());
  const auto usage = co_await object->store().usage(object->caller());
  if (!usage) co_return failed<v2::statfsres>(usage.error());
  v2::statfsres res;
  res.info() = to_statfsok(*usage);
  co_return res;
}

namespace {

// 2.2.17: `count` bounds the entries as they are encoded. The end of the list and eof are counted
// too, as other servers do.
class Sink final : public vfs::DirectorySink {
 public:
  Sink(Cookies& cookies, std::vector<v2::entry>& entries, std::uint32_t count)
      : cookies_(cookies), entries_(entries), left_(count < kEnd ? 0 : count - kEnd) {}

  bool entry(const vfs::DirectoryEntry& entry) override {
    const auto length = static_cast<std::uint32_t>(entry.name.size());
    // Versions before 3 cannot say a longer name; the entry is there all the same.
    if (length > v2::MAXNAMLEN) return true;
    const std::uint32_t size = 4 + 4 + 4 + length + xdr_pad(length) + 4;
    if (size > left_) return full_ = true, false;
    left_ -= size;
    v2::entry& made = entries_.emplace_back();
    made.fileid = to_fileid(entry.file_id);
    made.name = entry.name;
    store_be(made.cookie.data(), cookies_.number_of(entry.cookie));
    return true;
  }
  bool full() const { return full_; }

 private:
  static constexpr std::uint32_t kEnd = 8;

  Cookies& cookies_;
  std::vector<v2::entry>& entries_;
  std::uint32_t left_;
  bool full_ = false;
};

}  // namespace

Task<v2::readdirres> readdir(Request request, v2::readdirargs args) {
  const auto directory = co_await request.resolve(args.dir);
  if (!directory) co_return failed<v2::readdirres>(directory.error());
  const auto cookie = request.cookies().cookie_of(load_be<std::uint32_t>(args.cookie.data()));
  if (!cookie) co_return failed<v2::readdirres>(vfs::Status::BadCookie);
  const std::uint32_t count = std::min(args.count, v2::MAXDATA);
  std::vector<v2::entry> entries;
  Sink sink(request.cookies(), entries, count);
  vfs::ListFrom from;
  from.cookie = *cookie;
  from.budget = count;
  const auto listed =
      co_await directory->store().list(directory->caller(), directory->handle, from, sink);
  if (!listed) co_return failed<v2::readdirres>(listed.error());
  // A page without entries and without the end would make the client ask for the same page again
  // and again.
  if (entries.empty() && sink.full()) co_return failed<v2::readdirres>(v2::NFSERR_IO);
  v2::readdirres res;
  res.readdirok() = {std::move(entries), listed->eof};
  co_return res;
}

}  // namespace stag::nfs::nfs2
