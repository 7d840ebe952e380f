// Attributes, data, listings and facts in version 2.
#include <algorithm>
#include <array>

#include "nfs/client/v2/values.h"
#include "oncrpc/auth_sys.h"

namespace stag::nfs::client::nfs2 {

namespace {

// RFC 1094 has 32 bits; servers take half of that, as the int of their day.
constexpr std::uint64_t kMaxFileSize = 0x7fffffff;

Task<Outcome<v2::fattr>> attributes_of(Context to, const v3::nfs_fh3& object) {
  const Outcome<v2::fhandle> handle = to_fhandle(to.doing, object);
  if (!handle) co_return Failure{handle.error()};
  const auto res = co_await run<v2::NFSPROC_GETATTR>(to, *handle);
  if (!res) co_return Failure{res.error()};
  co_return res->attributes();
}

// The "rwx" of an object that a caller has, by the first of its classes (RFC 1094 3.3 leaves the
// judgement to the server; this one is for showing).
std::uint32_t permissions(const rpc::Credentials& credentials, const v2::fattr& object) {
  const auto who = oncrpc::decode_auth_sys(credentials.credential().body);
  const std::uint32_t any = (object.mode | object.mode >> 3 | object.mode >> 6) & 7;
  if (!who) return object.mode & 7;
  if (who->uid == 0) return (object.mode & 0040000) != 0 ? 7 : 6 | (any & 1);
  if (who->uid == object.uid) return object.mode >> 6 & 7;
  const bool member = who->gid == object.gid ||
                      std::find(who->gids.begin(), who->gids.end(), object.gid) != who->gids.end();
  return member ? object.mode >> 3 & 7 : object.mode & 7;
}

std::uint32_t granted(std::uint32_t bits, bool directory) {
  std::uint32_t access = 0;
  if ((bits & 4) != 0) access |= v3::ACCESS3_READ;
  if ((bits & 2) != 0) access |= v3::ACCESS3_MODIFY | v3::ACCESS3_EXTEND;
  if ((bits & 2) != 0 && directory) access |= v3::ACCESS3_DELETE;
  if ((bits & 1) != 0) access |= directory ? v3::ACCESS3_LOOKUP : v3::ACCESS3_EXECUTE;
  return access;
}

bool wants_server_time(const v3::sattr3& wanted) {
  return wanted.atime.set_it == v3::SET_TO_SERVER_TIME ||
         wanted.mtime.set_it == v3::SET_TO_SERVER_TIME;
}

// What SETATTR of version 3 takes in steps.
struct Steps {
  v2::sattrargs now{};    // the attributes and the server's time
  v2::sattrargs times{};  // what the server's time must not have changed
  bool two = false;
};

// `before`: as the object is; looked at for the server's time only.
Steps steps_of(const v2::fhandle& file, const v2::sattr& attributes, const v3::sattr3& wanted,
               const v2::fattr& before) {
  Steps steps;
  steps.now = {file, attributes};
  if (!wants_server_time(wanted)) return steps;
  const bool atime_now = wanted.atime.set_it == v3::SET_TO_SERVER_TIME;
  const bool mtime_now = wanted.mtime.set_it == v3::SET_TO_SERVER_TIME;
  // Seconds that do little harm with a server that knows nothing of the convention.
  const v2::timeval server_time{before.ctime.seconds, kServerTime};
  steps.now.attributes.mtime = server_time;
  steps.now.attributes.atime = atime_now ? server_time : kKeepTime;
  steps.times = {file, {kKeep, kKeep, kKeep, kKeep, kKeepTime, kKeepTime}};
  if (!atime_now) steps.times.attributes.atime = attributes.atime;
  if (!mtime_now)
    steps.times.attributes.mtime =
        wanted.mtime.set_it == v3::DONT_CHANGE ? before.mtime : attributes.mtime;
  steps.two =
      steps.times.attributes.atime != kKeepTime || steps.times.attributes.mtime != kKeepTime;
  return steps;
}

}  // namespace

Task<Outcome<v3::GETATTR3resok>> perform(Context to, const v3::GETATTR3args& args) {
  const Outcome<v2::fattr> attributes = co_await attributes_of(to, args.object);
  if (!attributes) co_return Failure{attributes.error()};
  co_return v3::GETATTR3resok{to_fattr3(*attributes)};
}

Task<Outcome<v3::SETATTR3resok>> perform(Context to, const v3::SETATTR3args& args) {
  const Outcome<v2::fhandle> file = to_fhandle(to.doing, args.object);
  if (!file) co_return Failure{file.error()};
  const Outcome<v2::sattr> attributes = to_sattr(to.doing, args.new_attributes);
  if (!attributes) co_return Failure{attributes.error()};
  Outcome<v2::fattr> before = v2::fattr{};
  if (args.guard.check || wants_server_time(args.new_attributes))
    before = co_await attributes_of(to, args.object);
  if (!before) co_return Failure{before.error()};
  if (args.guard.check && to_fattr3(*before).ctime != args.guard.obj_ctime())
    co_return Failure{Error::of_status(to.doing, v3::NFS3ERR_NOT_SYNC)};
  const Steps steps = steps_of(*file, *attributes, args.new_attributes, *before);
  auto res = co_await run<v2::NFSPROC_SETATTR>(to, steps.now);
  if (res && steps.two) res = co_await run<v2::NFSPROC_SETATTR>(to, steps.times);
  if (!res) co_return Failure{res.error()};
  v3::SETATTR3resok ok;
  ok.obj_wcc.after = to_post_op_attr(res->attributes());
  co_return ok;
}

Task<Outcome<v3::ACCESS3resok>> perform(Context to, const v3::ACCESS3args& args) {
  const Outcome<v2::fattr> attributes = co_await attributes_of(to, args.object);
  if (!attributes) co_return Failure{attributes.error()};
  v3::ACCESS3resok ok;
  ok.obj_attributes = to_post_op_attr(*attributes);
  ok.access = args.access &
              granted(permissions(to.credentials, *attributes), attributes->type == v2::NFDIR);
  co_return ok;
}

Task<Outcome<v3::READLINK3resok>> perform(Context to, const v3::READLINK3args& args) {
  const Outcome<v2::fhandle> link = to_fhandle(to.doing, args.symlink);
  if (!link) co_return Failure{link.error()};
  auto res = co_await run<v2::NFSPROC_READLINK>(to, *link);
  if (!res) co_return Failure{res.error()};
  v3::READLINK3resok ok;
  ok.data = std::move(res->link().data);
  co_return ok;
}

Task<Outcome<v3::READ3resok>> perform(Context to, const v3::READ3args& args) {
  const Outcome<v2::fhandle> file = to_fhandle(to.doing, args.file);
  if (!file) co_return Failure{file.error()};
  v3::READ3resok ok;
  ok.eof = true;
  // No file of version 2 reaches so far.
  if (args.offset > kKeep) co_return ok;
  v2::readargs wanted{*file, static_cast<std::uint32_t>(args.offset),
                      std::min(args.count, v2::MAXDATA), 0};
  std::array<rpc::Sink, 1> sinks{};
  if (!to.options.sinks.empty()) {
    const MutableBytes room = to.options.sinks[0].memory;
    sinks[0] = {v2::item::readok_data,
                room.first(std::min<std::size_t>(room.size(), wanted.count))};
    to.options.sinks = sinks;
  }
  auto res = co_await run<v2::NFSPROC_READ>(to, wanted);
  if (!res) co_return Failure{res.error()};
  v2::readok& read = res->reply();
  ok.file_attributes = to_post_op_attr(read.attributes);
  ok.count = static_cast<std::uint32_t>(read.data.size());
  ok.eof = args.offset + ok.count >= read.attributes.size;
  ok.data = std::move(read.data);
  co_return ok;
}

Task<Outcome<v3::WRITE3resok>> perform(Context to, const v3::WRITE3args& args) {
  const Outcome<v2::fhandle> file = to_fhandle(to.doing, args.file);
  if (!file) co_return Failure{file.error()};
  const std::size_t size = std::min<std::size_t>(args.data.size(), v2::MAXDATA);
  if (args.offset + size >= kKeep) co_return Failure{Error::of_status(to.doing, v3::NFS3ERR_FBIG)};
  v2::writeargs wanted;
  wanted.file = *file;
  wanted.offset = static_cast<std::uint32_t>(args.offset);
  wanted.data = args.data.slice(0, size);
  const auto res = co_await run<v2::NFSPROC_WRITE>(to, wanted);
  if (!res) co_return Failure{res.error()};
  v3::WRITE3resok ok;
  ok.file_wcc.after = to_post_op_attr(res->attributes());
  ok.count = static_cast<std::uint32_t>(size);
  // RFC 1094 2.2: what is answered is on stable storage.
  ok.committed = v3::FILE_SYNC;
  co_return ok;
}

Task<Outcome<v3::COMMIT3resok>> perform(Context, const v3::COMMIT3args&) {
  co_return v3::COMMIT3resok{};
}

Task<Outcome<v3::READDIR3resok>> perform(Context to, const v3::READDIR3args& args) {
  const Outcome<v2::fhandle> directory = to_fhandle(to.doing, args.dir);
  if (!directory) co_return Failure{directory.error()};
  v2::readdirargs wanted;
  wanted.dir = *directory;
  store_be(wanted.cookie.data(), static_cast<std::uint32_t>(args.cookie));
  wanted.count = std::min(args.count, v2::MAXDATA);
  auto res = co_await run<v2::NFSPROC_READDIR>(to, wanted);
  if (!res) co_return Failure{res.error()};
  v3::READDIR3resok ok;
  for (v2::entry& entry : res->readdirok().entries)
    ok.reply.entries.push_back(
        {entry.fileid, std::move(entry.name), load_be<std::uint32_t>(entry.cookie.data())});
  ok.reply.eof = res->readdirok().eof;
  co_return ok;
}

Task<Outcome<v3::READDIRPLUS3resok>> perform(Context to, const v3::READDIRPLUS3args&) {
  co_return Failure{Error::of_status(to.doing, v3::NFS3ERR_NOTSUPP)};
}

Task<Outcome<v3::FSSTAT3resok>> perform(Context to, const v3::FSSTAT3args& args) {
  const Outcome<v2::fhandle> root = to_fhandle(to.doing, args.fsroot);
  if (!root) co_return Failure{root.error()};
  const auto res = co_await run<v2::NFSPROC_STATFS>(to, *root);
  if (!res) co_return Failure{res.error()};
  const v2::statfsok& info = res->info();
  const std::uint64_t block = info.bsize;
  v3::FSSTAT3resok ok;
  ok.tbytes = block * info.blocks;
  ok.fbytes = block * info.bfree;
  ok.abytes = block * info.bavail;
  co_return ok;
}

Task<Outcome<v3::FSINFO3resok>> perform(Context to, const v3::FSINFO3args& args) {
  const Outcome<v2::fhandle> root = to_fhandle(to.doing, args.fsroot);
  if (!root) co_return Failure{root.error()};
  const auto res = co_await run<v2::NFSPROC_STATFS>(to, *root);
  if (!res) co_return Failure{res.error()};
  const std::uint32_t told = res->info().tsize;
  v3::FSINFO3resok ok;
  ok.rtmax = told == 0 ? v2::MAXDATA : std::min(told, v2::MAXDATA);
  ok.rtpref = ok.wtmax = ok.wtpref = ok.rtmax;
  ok.rtmult = ok.wtmult = 512;
  ok.dtpref = v2::MAXDATA;
  ok.maxfilesize = kMaxFileSize;
  ok.time_delta = {0, 1000};
  ok.properties = v3::FSF3_LINK | v3::FSF3_SYMLINK | v3::FSF3_HOMOGENEOUS | v3::FSF3_CANSETTIME;
  co_return ok;
}

Task<Outcome<v3::PATHCONF3resok>> perform(Context to, const v3::PATHCONF3args& args) {
  const Outcome<v2::fattr> attributes = co_await attributes_of(to, args.object);
  if (!attributes) co_return Failure{attributes.error()};
  v3::PATHCONF3resok ok;
  ok.obj_attributes = to_post_op_attr(*attributes);
  ok.linkmax = 0;  // Not told.
  ok.name_max = v2::MAXNAMLEN;
  ok.no_trunc = true;
  ok.chown_restricted = true;
  ok.case_preserving = true;
  co_return ok;
}

}  // namespace stag::nfs::client::nfs2
