// Attributes, data, listings and facts in version 2.
#include <algorithm>
#include <array>

#include "nfs/client/v2/run.h"
#include "nfs/ulb/nfs2.h"
#include "nfs/ulb/nfsacl.h"
#include "oncrpc/auth_sys.h"

namespace stag::nfs::client::nfs2 {

namespace {

// RFC 1094 has 32 bits; servers take half of that, as the int of their day.
constexpr std::uint64_t kMaxFileSize = 0x7fffffff;

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
  std::uint32_t allowed = 0;
  if ((bits & 4) != 0) allowed |= access::kRead;
  if ((bits & 2) != 0) allowed |= access::kModify | access::kExtend;
  if ((bits & 2) != 0 && directory) allowed |= access::kDelete;
  if ((bits & 1) != 0) allowed |= directory ? access::kLookup : access::kExecute;
  return allowed;
}

bool wants_server_time(const SetAttributes& wanted) {
  return wanted.accessed.how == SetTime::How::Now || wanted.modified.how == SetTime::How::Now;
}

// The SETATTR calls that one setattr() takes.
struct Steps {
  v2::sattrargs now{};    // the attributes and the server's time
  v2::sattrargs times{};  // for times that setting the server's time must not change
  bool two = false;
};

// `before`: as the object is; looked at for the server's time only.
Steps steps_of(const v2::fhandle& file, const v2::sattr& attributes, const SetAttributes& wanted,
               const v2::fattr& before) {
  Steps steps;
  steps.now = {file, attributes};
  if (!wants_server_time(wanted)) return steps;
  const bool accessed_now = wanted.accessed.how == SetTime::How::Now;
  const bool modified_now = wanted.modified.how == SetTime::How::Now;
  // Seconds that do little harm with a server that does not know the convention.
  const v2::timeval server_time{before.ctime.seconds, kServerTime};
  steps.now.attributes.mtime = server_time;
  steps.now.attributes.atime = accessed_now ? server_time : kKeepTime;
  steps.times = {file, {kKeep, kKeep, kKeep, kKeep, kKeepTime, kKeepTime}};
  if (!accessed_now) steps.times.attributes.atime = attributes.atime;
  if (!modified_now)
    steps.times.attributes.mtime =
        wanted.modified.how == SetTime::How::Keep ? before.mtime : attributes.mtime;
  steps.two =
      steps.times.attributes.atime != kKeepTime || steps.times.attributes.mtime != kKeepTime;
  return steps;
}

}  // namespace

Nfs2::Nfs2(rpc::Channel& channel, const ProtocolOptions& options)
    : client_(channel, options, ulb::nfs2(), to_status),
      acl_client_(channel, options, ulb::nfsacl(), to_status) {}

rpc::Channel& Nfs2::channel() const {
  return client_.channel();
}

std::shared_ptr<Protocol> Nfs2::with(const ProtocolOptions& options) const {
  return std::make_shared<Nfs2>(channel(), options);
}

Task<Outcome<Ok>> Nfs2::ping(OperationContext context) {
  return client_.ping(context, v2::NFS_VERSION);
}

Task<Outcome<v2::fattr>> Nfs2::attributes_of(OperationContext context, const Handle& object) {
  const Outcome<v2::fhandle> handle = to_fhandle(context, object);
  if (!handle) co_return Failure{handle.error()};
  const auto res = co_await run<v2::NFSPROC_GETATTR>(context, *handle);
  if (!res) co_return Failure{res.error()};
  co_return res->attributes();
}

Task<Outcome<Attributes>> Nfs2::getattr(OperationContext context, Handle object) {
  const Outcome<v2::fattr> attributes = co_await attributes_of(context, object);
  if (!attributes) co_return Failure{attributes.error()};
  co_return to_attributes(*attributes);
}

Task<Outcome<std::optional<Attributes>>> Nfs2::setattr(OperationContext context, File object,
                                                       SetAttributes wanted,
                                                       std::optional<Time> guard) {
  const Outcome<v2::fhandle> file = to_fhandle(context, object.handle);
  if (!file) co_return Failure{file.error()};
  const Outcome<v2::sattr> attributes = to_sattr(context, wanted);
  if (!attributes) co_return Failure{attributes.error()};
  Outcome<v2::fattr> before = v2::fattr{};
  if (guard || wants_server_time(wanted)) before = co_await attributes_of(context, object.handle);
  if (!before) co_return Failure{before.error()};
  if (guard && to_attributes(*before).changed != *guard)
    co_return Failure{Error::of_status(context, Status::NotSync)};
  const Steps steps = steps_of(*file, *attributes, wanted, *before);
  auto res = co_await run<v2::NFSPROC_SETATTR>(context, steps.now);
  if (res && steps.two) res = co_await run<v2::NFSPROC_SETATTR>(context, steps.times);
  if (!res) co_return Failure{res.error()};
  co_return std::optional<Attributes>(to_attributes(res->attributes()));
}

Task<Outcome<Found>> Nfs2::lookup(OperationContext context, Handle directory,
                                  std::string_view name) {
  const Outcome<v2::diropargs> entry = to_diropargs(context, directory, name);
  if (!entry) co_return Failure{entry.error()};
  const auto res = co_await run<v2::NFSPROC_LOOKUP>(context, *entry);
  if (!res) co_return Failure{res.error()};
  co_return Found{to_handle(res->diropok().file), to_attributes(res->diropok().attributes)};
}

Task<Outcome<std::uint32_t>> Nfs2::access(OperationContext context, Handle object,
                                          std::uint32_t asked) {
  const Outcome<v2::fattr> attributes = co_await attributes_of(context, object);
  if (!attributes) co_return Failure{attributes.error()};
  const std::uint32_t bits = permissions(client_.options().credentials, *attributes);
  co_return asked& granted(bits, attributes->type == v2::NFDIR);
}

Task<Outcome<std::string>> Nfs2::readlink(OperationContext context, Handle symlink,
                                          std::optional<std::uint64_t>) {
  const Outcome<v2::fhandle> link = to_fhandle(context, symlink);
  if (!link) co_return Failure{link.error()};
  auto res = co_await run<v2::NFSPROC_READLINK>(context, *link);
  if (!res) co_return Failure{res.error()};
  co_return std::move(res->link().data);
}

Task<Outcome<ReadPart>> Nfs2::read(OperationContext context, File file, std::uint64_t offset,
                                   MutableBytes to) {
  const Outcome<v2::fhandle> handle = to_fhandle(context, file.handle);
  if (!handle) co_return Failure{handle.error()};
  // No file of version 2 reaches so far.
  if (offset > kKeep) co_return ReadPart{0, true};
  const MutableBytes buffer = to.first(std::min<std::size_t>(to.size(), v2::MAXDATA));
  const v2::readargs wanted{*handle, static_cast<std::uint32_t>(offset),
                            static_cast<std::uint32_t>(buffer.size()), 0};
  const std::array<rpc::ResultBuffer, 1> result_buffers{
      rpc::ResultBuffer{v2::item::readok_data, buffer}};
  const std::span<const rpc::ResultBuffer> used =
      std::span(result_buffers).first(buffer.empty() ? 0 : 1);
  const auto res = co_await run<v2::NFSPROC_READ>(context, wanted, used);
  if (!res) co_return Failure{res.error()};
  const v2::readok& reply = res->reply();
  if (reply.data.size() > buffer.size())
    co_return Failure{Error::of_protocol(context, "sent more data than asked for")};
  rpc::copy_into(reply.data, buffer);
  const auto count = static_cast<std::uint32_t>(reply.data.size());
  co_return ReadPart{count, offset + count >= reply.attributes.size};
}

Task<Outcome<WritePart>> Nfs2::write(OperationContext context, File file, std::uint64_t offset,
                                     Bytes data, Stability) {
  const Outcome<v2::fhandle> handle = to_fhandle(context, file.handle);
  if (!handle) co_return Failure{handle.error()};
  const Bytes part = data.first(std::min<std::size_t>(data.size(), v2::MAXDATA));
  if (offset >= kKeep || offset + part.size() >= kKeep)
    co_return Failure{Error::of_status(context, Status::FileTooBig)};
  v2::writeargs wanted;
  wanted.file = *handle;
  wanted.offset = static_cast<std::uint32_t>(offset);
  wanted.data = Rope::borrow(part);
  const auto res = co_await run<v2::NFSPROC_WRITE>(context, wanted);
  if (!res) co_return Failure{res.error()};
  // RFC 1094 2.2: data is on stable storage when the WRITE is answered.
  co_return WritePart{static_cast<std::uint32_t>(part.size()), Stability::FileSync, {}};
}

Task<Outcome<Verifier>> Nfs2::commit(OperationContext, Handle, std::uint64_t, std::uint32_t) {
  co_return Verifier{};
}

Task<Outcome<ListedPart>> Nfs2::list(OperationContext context, Handle directory, ListPosition from,
                                     bool with_attributes, std::uint32_t size) {
  if (with_attributes) co_return Failure{Error::of_status(context, Status::NotSupported)};
  const Outcome<v2::fhandle> handle = to_fhandle(context, directory);
  if (!handle) co_return Failure{handle.error()};
  v2::readdirargs wanted;
  wanted.dir = *handle;
  store_be(wanted.cookie.data(), static_cast<std::uint32_t>(from.cookie));
  wanted.count = std::min(size, v2::MAXDATA);
  auto res = co_await run<v2::NFSPROC_READDIR>(context, wanted);
  if (!res) co_return Failure{res.error()};
  ListedPart part;
  for (v2::entry& entry : res->readdirok().entries)
    part.entries.push_back({{std::move(entry.name), entry.fileid, std::nullopt, std::nullopt},
                            load_be<std::uint32_t>(entry.cookie.data())});
  part.eof = res->readdirok().eof;
  co_return part;
}

Task<Outcome<v2::statfsok>> Nfs2::statfs(OperationContext context, const Handle& object) {
  const Outcome<v2::fhandle> handle = to_fhandle(context, object);
  if (!handle) co_return Failure{handle.error()};
  const auto res = co_await run<v2::NFSPROC_STATFS>(context, *handle);
  if (!res) co_return Failure{res.error()};
  co_return res->info();
}

Task<Outcome<FileSystemUsage>> Nfs2::usage(OperationContext context, Handle object) {
  const Outcome<v2::statfsok> facts = co_await statfs(context, object);
  if (!facts) co_return Failure{facts.error()};
  const std::uint64_t block = facts->bsize;
  FileSystemUsage usage;
  usage.total_bytes = block * facts->blocks;
  usage.free_bytes = block * facts->bfree;
  usage.available_bytes = block * facts->bavail;
  co_return usage;
}

Task<Outcome<FileSystemInfo>> Nfs2::info(OperationContext context, Handle object) {
  const Outcome<v2::statfsok> facts = co_await statfs(context, object);
  if (!facts) co_return Failure{facts.error()};
  FileSystemInfo info;
  info.read_max = facts->tsize == 0 ? v2::MAXDATA : std::min(facts->tsize, v2::MAXDATA);
  info.read_preferred = info.write_max = info.write_preferred = info.read_max;
  info.list_preferred = v2::MAXDATA;
  info.max_file_size = kMaxFileSize;
  info.time_granularity = {0, 1000};
  info.hard_links = info.symlinks = info.times_can_be_set = true;
  co_return info;
}

Task<Outcome<NameLimits>> Nfs2::name_limits(OperationContext context, Handle object) {
  // Fails when the object does not exist.
  const Outcome<v2::fattr> attributes = co_await attributes_of(context, object);
  if (!attributes) co_return Failure{attributes.error()};
  NameLimits limits;
  limits.max_name = v2::MAXNAMLEN;
  limits.no_truncation = limits.chown_restricted = limits.case_preserving = true;
  co_return limits;
}

}  // namespace stag::nfs::client::nfs2
