#include "bench/load/nfs41_file.h"

#include <unistd.h>

#include <array>
#include <optional>
#include <vector>

#include "nfs/proto/nfs4.h"
#include "nfs/ulb/nfs4.h"
#include "rpc/client.h"

namespace stag::bench {
namespace {

namespace v4 = nfs::v4;

// What a Reply takes besides data: the attributes asked for, or the results of READ or WRITE.
constexpr std::uint32_t kResultsMax = 1024;
// A COMPOUND around 1 MiB of data.
constexpr std::uint32_t kMessageMax = (1 << 20) + 4096;

// Stands for attributes, which are not looked at.
struct SkippedAttributes {};
bool decode(xdr::Decoder& decoder, SkippedAttributes&) {
  std::uint32_t words = 0, ignored = 0;
  if (!decoder.count(words, xdr::kUnbounded, 4)) return false;
  while (words-- > 0)
    if (!decoder.u32(ignored)) return false;
  Bytes values;
  return decoder.inline_opaque(values, xdr::kUnbounded);
}

struct FileArgs {
  v4::SEQUENCE4args sequence;
  const v4::PUTFH4args* file = nullptr;
  const v4::nfs_argop4* operation = nullptr;
};

// COMPOUND as a procedure of SEQUENCE, PUTFH and one operation more, without lists. `Last`: what
// the last one results in when it succeeds.
template <class Last>
struct FileCompound {
  using Args = FileArgs;
  struct Results {
    v4::nfsstat4 status{};
    Last last;
  };
  static constexpr std::uint32_t program = v4::NFSPROC4_COMPOUND::program;
  static constexpr std::uint32_t version = v4::NFSPROC4_COMPOUND::version;
  static constexpr std::uint32_t number = v4::NFSPROC4_COMPOUND::number;
  static constexpr std::string_view name = v4::NFSPROC4_COMPOUND::name;
  static constexpr std::optional<std::uint32_t> max_args_size = std::nullopt;
  static constexpr std::optional<std::uint32_t> max_results_size = kResultsMax;

  static void encode_args(xdr::Encoder& encoder, const Args& args) {
    encoder.string(xdr::kNoItem, "");  // tag
    encoder.u32(1);                    // minor version
    encoder.u32(3);                    // operations
    encoder.u32(v4::OP_SEQUENCE);
    encode(encoder, args.sequence);
    encoder.u32(v4::OP_PUTFH);
    encode(encoder, *args.file);
    encode(encoder, *args.operation);
  }
  static bool decode_results(xdr::Decoder& decoder, Results& results) {
    std::uint32_t count = 0;
    Bytes tag;
    if (!decode(decoder, results.status) || !decoder.inline_opaque(tag, v4::NFS4_OPAQUE_LIMIT) ||
        !decoder.u32(count))
      return false;
    // The results of the first operations only, up to the one that failed.
    if (results.status != v4::NFS4_OK) return static_cast<void>(decoder.rest()), true;
    // Of SEQUENCE its number, status and nine words, of the others number and status: the status of
    // the COMPOUND is that of each.
    std::array<std::byte, 4 * (2 + 9 + 2 + 2)> passed_over;
    return decoder.fixed_opaque(passed_over) && decode(decoder, results.last);
  }
  // This end receives no arguments and sends no results.
  static bool decode_args(xdr::Decoder&, Args&) { return false; }
  static void encode_results(xdr::Encoder&, const Results&) {}
};

rpc::ReplyBound reply_bound(const FileArgs& args) {
  rpc::ReplyBound bound;
  bound.payload_max = kResultsMax;
  if (args.operation->argop == v4::OP_READ)
    bound.items.push_back({v4::item::READ4resok_data, args.operation->opread().count});
  return bound;
}

constexpr std::array kFileBinding{
    rpc::bind<FileCompound<SkippedAttributes>>(
        {v4::item::WRITE4args_data}, {v4::item::READ4resok_data},
        [](const FileArgs& args) { return reply_bound(args); })
        .paired(rpc::Pairing::ByIndex),
};

v4::nfs_argop4 operation(v4::nfs_opnum4 number) {
  v4::nfs_argop4 made;
  made.argop = number;
  return made;
}

v4::nfs_argop4 exchange_id() {
  v4::nfs_argop4 made = operation(v4::OP_EXCHANGE_ID);
  const std::string owner = "stag bench " + std::to_string(getpid());
  made.opexchange_id().eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(owner));
  return made;
}

// The attributes of NFSv3, and the change attribute.
v4::nfs_argop4 get_attributes() {
  v4::bitmap4 asked(2);
  for (const std::uint32_t number :
       {v4::FATTR4_TYPE, v4::FATTR4_CHANGE, v4::FATTR4_SIZE, v4::FATTR4_FSID, v4::FATTR4_FILEID,
        v4::FATTR4_MODE, v4::FATTR4_NUMLINKS, v4::FATTR4_OWNER, v4::FATTR4_OWNER_GROUP,
        v4::FATTR4_RAWDEV, v4::FATTR4_SPACE_USED, v4::FATTR4_TIME_ACCESS, v4::FATTR4_TIME_METADATA,
        v4::FATTR4_TIME_MODIFY})
    asked[number / 32] |= 1u << number % 32;
  v4::nfs_argop4 made = operation(v4::OP_GETATTR);
  made.opgetattr().attr_request = std::move(asked);
  return made;
}

}  // namespace

struct Nfs41File::State {
  struct Slot {
    std::uint32_t id = 0;
    std::uint32_t sequence = 0;  // of the last request
  };
  using Operation = v4::nfs_argop4;

  Task<Result<Ok, std::string>> open(rpc::Channel& channel, rpc::Credentials credentials,
                                     std::string name);
  Task<std::optional<std::vector<v4::nfs_resop4>>> set_up(rpc::Client& client,
                                                          std::vector<Operation> operations);
  Task<bool> make_session(rpc::Client& client);
  Task<bool> open_file(rpc::Client& client, std::string name);
  v4::SEQUENCE4args next_in(Slot& slot) const;
  // Nothing when it failed.
  template <class Last>
  Task<std::optional<Last>> run(const Operation& operation,
                                std::span<const rpc::ResultBuffer> result_buffers);
  static bool succeeded(const std::optional<SkippedAttributes>& results, State&) {
    return results.has_value();
  }
  Eventual<bool> getattr();
  Task<bool> read(std::uint64_t offset, MutableBytes memory);
  Task<bool> write(std::uint64_t offset, Bytes data);
  bool fail(std::string why);

  std::optional<rpc::Client> client_;
  v4::clientid4 client_id_ = 0;
  v4::sessionid4 session_{};
  std::vector<Slot> free_;
  std::uint32_t highest_slot_ = 0;
  v4::PUTFH4args file_;
  v4::stateid4 stateid_;
  Operation getattr_;
  std::string trouble_;
};

bool Nfs41File::State::fail(std::string why) {
  trouble_ = std::move(why);
  return false;
}

Task<Result<Ok, std::string>> Nfs41File::State::open(rpc::Channel& channel,
                                                     rpc::Credentials credentials,
                                                     std::string name) {
  getattr_ = get_attributes();
  rpc::Client client(channel, nfs::ulb::nfs4(), credentials);
  client_.emplace(channel, kFileBinding, std::move(credentials));
  const bool made = co_await make_session(client);
  if (!made) co_return Failure{trouble_};
  const bool opened = co_await open_file(client, std::move(name));
  if (!opened) co_return Failure{trouble_};
  co_return Ok{};
}

Task<std::optional<std::vector<v4::nfs_resop4>>> Nfs41File::State::set_up(
    rpc::Client& client, std::vector<Operation> operations) {
  v4::COMPOUND4args args;
  args.minorversion = 1;
  args.argarray = std::move(operations);
  auto results = co_await client.call<v4::NFSPROC4_COMPOUND>(args);
  if (results && results->status == v4::NFS4_OK) co_return std::move(results->resarray);
  fail(results ? "NFS version 4.1 is refused with status " + std::to_string(results->status)
               : results.error().message());
  co_return std::nullopt;
}

Task<bool> Nfs41File::State::make_session(rpc::Client& client) {
  std::vector<Operation> operations(1, exchange_id());
  const auto exchanged = co_await set_up(client, std::move(operations));
  if (!exchanged) co_return false;
  const v4::EXCHANGE_ID4resok& known = exchanged->at(0).opexchange_id().eir_resok4();
  client_id_ = known.eir_clientid;
  operations.assign(1, operation(v4::OP_CREATE_SESSION));
  v4::CREATE_SESSION4args& args = operations[0].opcreate_session();
  args.csa_clientid = client_id_;
  args.csa_sequence = known.eir_sequenceid;
  args.csa_fore_chan_attrs = {0, kMessageMax, kMessageMax, 0, 16, kSlots, {}};
  args.csa_back_chan_attrs = {0, 4096, 4096, 0, 2, 1, {}};
  const auto created = co_await set_up(client, std::move(operations));
  if (!created) co_return false;
  const v4::CREATE_SESSION4resok& session = created->at(0).opcreate_session().csr_resok4();
  session_ = session.csr_sessionid;
  const std::uint32_t slots = std::min(kSlots, session.csr_fore_chan_attrs.ca_maxrequests);
  highest_slot_ = slots - 1;
  for (std::uint32_t id = slots; id > 0; --id) free_.push_back({id - 1, 0});
  co_return true;
}

v4::SEQUENCE4args Nfs41File::State::next_in(Slot& slot) const {
  return {session_, ++slot.sequence, slot.id, highest_slot_, false};
}

Task<bool> Nfs41File::State::open_file(rpc::Client& client, std::string name) {
  Slot& slot = free_.back();
  std::vector<Operation> operations{operation(v4::OP_SEQUENCE), operation(v4::OP_RECLAIM_COMPLETE)};
  operations[0].opsequence() = next_in(slot);
  operations[1].opreclaim_complete() = {};
  const auto completed = co_await set_up(client, std::move(operations));
  if (!completed) co_return false;
  operations = {operation(v4::OP_SEQUENCE), operation(v4::OP_PUTROOTFH), operation(v4::OP_OPEN),
                operation(v4::OP_GETFH)};
  operations[0].opsequence() = next_in(slot);
  v4::OPEN4args& args = operations[2].opopen();
  args.share_access = v4::OPEN4_SHARE_ACCESS_BOTH;
  args.owner = {client_id_, Rope::copy_of(bytes_of("stag bench"))};
  args.claim.claim = v4::CLAIM_NULL;
  args.claim.file() = std::move(name);
  const auto opened = co_await set_up(client, std::move(operations));
  if (!opened) co_return false;
  stateid_ = opened->at(2).opopen().resok4().stateid;
  file_.object = opened->at(3).opgetfh().resok4().object;
  co_return true;
}

template <class Last>
Task<std::optional<Last>> Nfs41File::State::run(const Operation& operation,
                                                std::span<const rpc::ResultBuffer> result_buffers) {
  if (free_.empty()) {
    fail("more operations at a time than the server grants slots");
    co_return std::nullopt;
  }
  Slot slot = free_.back();
  free_.pop_back();
  const FileArgs args{next_in(slot), &file_, &operation};
  rpc::CallOptions options;
  options.result_buffers = result_buffers;
  rpc::Client::Exchange<FileCompound<Last>> exchange(*client_, args, options);
  Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
  auto results = exchange.results(reply);
  free_.push_back(slot);
  if (results && results->status == v4::NFS4_OK) co_return std::move(results->last);
  fail(results ? "status " + std::to_string(results->status) : results.error().message());
  co_return std::nullopt;
}

Eventual<bool> Nfs41File::State::getattr() {
  return Eventual<bool>::converted<succeeded>(run<SkippedAttributes>(getattr_, {}), *this);
}

Task<bool> Nfs41File::State::read(std::uint64_t offset, MutableBytes memory) {
  Operation args = operation(v4::OP_READ);
  args.opread() = {stateid_, offset, static_cast<std::uint32_t>(memory.size())};
  const rpc::ResultBuffer sink{v4::item::READ4resok_data, memory};
  const std::optional<v4::READ4resok> read = co_await run<v4::READ4resok>(args, {&sink, 1});
  if (!read) co_return false;
  if (read->data.size() != memory.size())
    co_return fail("the server returned fewer bytes than asked for");
  rpc::copy_into(read->data, memory);
  co_return true;
}

Task<bool> Nfs41File::State::write(std::uint64_t offset, Bytes data) {
  Operation args = operation(v4::OP_WRITE);
  args.opwrite() = {stateid_, offset, v4::UNSTABLE4, Rope::borrow(data)};
  const std::optional<v4::WRITE4resok> written = co_await run<v4::WRITE4resok>(args, {});
  if (!written) co_return false;
  co_return written->count == data.size() || fail("the server wrote fewer bytes than asked for");
}

Nfs41File::Nfs41File() : state_(std::make_unique<State>()) {}
Nfs41File::~Nfs41File() = default;

Task<Result<Ok, std::string>> Nfs41File::open(rpc::Channel& channel, rpc::Credentials credentials,
                                              std::string name) {
  return state_->open(channel, std::move(credentials), std::move(name));
}
Eventual<bool> Nfs41File::getattr() {
  return state_->getattr();
}
Task<bool> Nfs41File::read(std::uint64_t offset, MutableBytes memory) {
  return state_->read(offset, memory);
}
Task<bool> Nfs41File::write(std::uint64_t offset, Bytes data) {
  return state_->write(offset, data);
}
const std::string& Nfs41File::trouble() const {
  return state_->trouble_;
}

}  // namespace stag::bench
