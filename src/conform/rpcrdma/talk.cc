#include "conform/rpcrdma/talk.h"

#include <fmt/format.h>

#include <algorithm>

#include "xdr/encoder.h"

namespace stag::conform::rpcrdma {
namespace {

// supported_attrs, type, change, size, fsid, mode, owner, times and so on: some 150 bytes.
constexpr std::uint32_t kManyAttributes[] = {0x0010011b, 0x00b0a23a};

std::string rpc_status_text(const oncrpc::ReplyStatus& status) {
  if (status.reply == oncrpc::ReplyStat::MSG_DENIED) return "MSG_DENIED";
  switch (status.accept) {
    case oncrpc::AcceptStat::SUCCESS:
      return "SUCCESS";
    case oncrpc::AcceptStat::PROG_UNAVAIL:
      return "PROG_UNAVAIL";
    case oncrpc::AcceptStat::PROG_MISMATCH:
      return "PROG_MISMATCH";
    case oncrpc::AcceptStat::PROC_UNAVAIL:
      return "PROC_UNAVAIL";
    case oncrpc::AcceptStat::GARBAGE_ARGS:
      return "GARBAGE_ARGS";
    default:
      return "SYSTEM_ERR";
  }
}

}  // namespace

std::vector<std::byte> bytes_of_words(const Words& words) {
  std::vector<std::byte> bytes(4 * words.size());
  for (std::size_t i = 0; i < words.size(); ++i) store_be(bytes.data() + 4 * i, words[i]);
  return bytes;
}

Words null_call(std::uint32_t xid, std::uint32_t program, std::uint32_t version,
                std::uint32_t procedure) {
  return {xid, wire::CALL, 2, program, version, procedure, 0, 0, 0, 0};
}

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Words header_words(std::uint32_t xid, std::uint32_t version, std::uint32_t proc, Words lists,
                   std::uint32_t credits) {
  return joined({xid, version, credits, proc}, lists);
}

v4::nfs_argop4 operation(v4::nfs_opnum4 number) {
  v4::nfs_argop4 made;
  made.argop = number;
  return made;
}

v4::nfs_argop4 lookup_operation(const std::string& name) {
  v4::nfs_argop4 made = operation(v4::OP_LOOKUP);
  made.oplookup() = {name};
  return made;
}

v4::nfs_argop4 getattr_operation() {
  v4::nfs_argop4 made = operation(v4::OP_GETATTR);
  made.opgetattr().attr_request = {kManyAttributes[0], kManyAttributes[1]};
  return made;
}

v4::nfs_argop4 symlink_operation(const std::string& name, const std::string& target) {
  v4::nfs_argop4 made = operation(v4::OP_CREATE);
  v4::CREATE4args& args = made.opcreate();
  args.objtype.type = v4::NF4LNK;
  args.objtype.linkdata() = Rope::copy_of(bytes_of(target));
  args.objname = name;
  return made;
}

std::vector<v4::nfs_argop4> way_to(const Context& context) {
  std::vector<v4::nfs_argop4> operations{operation(v4::OP_PUTROOTFH)};
  for (const std::string& name : context.path) operations.push_back(lookup_operation(name));
  return operations;
}

Call compound_call(Context& context, std::vector<v4::nfs_argop4> operations,
                   std::span<const xdr::ItemId> watched, std::uint32_t minor) {
  Call call;
  call.header.xid = context.next_xid();
  call.header.credits = 8;
  xdr::Encoder encoder(watched);
  oncrpc::encode(
      encoder, oncrpc::CallHeader{call.header.xid, v4::NFS4_PROGRAM, v4::NFS_V4,
                                  v4::NFSPROC4_COMPOUND::number, context.credentials.credential()});
  encode(encoder, v4::COMPOUND4args{kCompoundTag, minor, std::move(operations)});
  call.stream = std::move(encoder).finish();
  return call;
}

void send_call(Peer& peer, const Call& call, std::span<const std::uint32_t> moved) {
  Rope message = Rope::copy_of(wire::EncodedHeader(call.header).bytes());
  if (call.header.proc == wire::RDMA_MSG)
    message.append(call.stream.without({moved.begin(), moved.end()}));
  peer.send(message.flatten().bytes());
}

void send_null(Peer& peer, std::uint32_t xid, std::uint32_t credits) {
  const Words words =
      joined(header_words(xid, 1, wire::RDMA_MSG, {0, 0, 0}, credits), null_call(xid));
  peer.send(bytes_of_words(words));
}

Task<std::unique_ptr<Peer>> greet(Context& context, std::uint32_t size, std::string& why,
                                  std::uint32_t receive_size) {
  PeerOptions options;
  if (size > 0) {
    const auto own = wire::encode_private_data({size, size, false});
    options.private_data.assign(own.begin(), own.end());
  }
  options.receive_size = std::max(size, receive_size);
  options.timeout = context.timeout;
  options.cancel = context.cancel;
  std::unique_ptr<Peer> peer =
      co_await Peer::connect(context.fabric, context.server, std::move(options), why);
  if (peer == nullptr) co_return nullptr;
  const std::uint32_t xid = context.next_xid();
  send_null(*peer, xid);
  const Answer answer = co_await peer->answer_to(xid);
  if (is_success(answer)) co_return peer;
  why = "the first NULL call: " + described(answer);
  co_await peer->close();
  co_return nullptr;
}

RpcReply rpc_reply(const Buffer& payload) {
  RpcReply reply;
  xdr::Decoder decoder(payload);
  const auto header = oncrpc::decode_reply(decoder);
  if (!header) return reply;
  reply.decoded = true;
  reply.status = header->status;
  reply.results = payload.slice(decoder.position(), payload.size() - decoder.position());
  return reply;
}

bool decode_compound(const Buffer& results, v4::COMPOUND4res& to) {
  xdr::Decoder decoder(results);
  return decode(decoder, to);
}

bool ends_with_too_big(const Answer& answer) {
  v4::COMPOUND4res results;
  return is_success(answer) && decode_compound(rpc_reply(answer.payload).results, results) &&
         (results.status == v4::NFS4ERR_RESOURCE || results.status == v4::NFS4ERR_REP_TOO_BIG);
}

std::string described(const Answer& answer) {
  if (answer.kind != Answer::Kind::Reply || answer.header.proc != wire::RDMA_MSG)
    return answer.text();
  const RpcReply reply = rpc_reply(answer.payload);
  return answer.text() +
         (reply.decoded ? " with " + rpc_status_text(reply.status) : " that is no RPC Reply");
}

bool is_success(const Answer& answer) {
  if (answer.kind != Answer::Kind::Reply) return false;
  const RpcReply reply = rpc_reply(answer.payload);
  return reply.decoded && reply.status.success();
}

std::string taken(const Exposed& memory, const wire::Segments& returned) {
  std::string all;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < memory.segments.size(); ++i) {
    const std::uint32_t length = memory.segments[i].length;
    if (i < returned.size())
      all += text_of(Bytes(memory.memory).subspan(begin, std::min(returned[i].length, length)));
    begin += length;
  }
  return all;
}

}  // namespace stag::conform::rpcrdma
