// The messages of cases, well formed and not, and how a case talks with the server.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "conform/rpcrdma/cases.h"
#include "nfs/proto/nfs4.h"
#include "oncrpc/message.h"
#include "xdr/stream.h"

namespace stag::conform::rpcrdma {

namespace v4 = stag::nfs::v4;

// The tag of every COMPOUND.
inline constexpr const char* kCompoundTag = "conform";

std::vector<std::byte> bytes_of_words(const Words& words);
// RPC CALL of NULL with AUTH_NONE, ten words.
Words null_call(std::uint32_t xid, std::uint32_t program = v4::NFS4_PROGRAM,
                std::uint32_t version = v4::NFS_V4, std::uint32_t procedure = 0);
Words joined(Words first, const Words& second);
// The four fixed words and, unless told otherwise, three absent lists.
Words header_words(std::uint32_t xid, std::uint32_t version, std::uint32_t proc,
                   Words lists = {0, 0, 0}, std::uint32_t credits = 8);

// Operations of version 4.0.
v4::nfs_argop4 operation(v4::nfs_opnum4 number);
v4::nfs_argop4 lookup_operation(const std::string& name);
v4::nfs_argop4 getattr_operation();
v4::nfs_argop4 symlink_operation(const std::string& name, const std::string& target);
// PUTROOTFH and a LOOKUP for each folder on the way.
std::vector<v4::nfs_argop4> way_to(const Context& context);

struct Call {
  wire::Header header;
  xdr::Stream stream;  // the RPC message
};
// An RPC Call of COMPOUND, with an XID of its own. Items of these ids can be told from the rest.
Call compound_call(Context& context, std::vector<v4::nfs_argop4> operations,
                   std::span<const xdr::ItemId> watched = {}, std::uint32_t minor = 0);
// Header and stream in one message, without the items that went by chunk.
void send_call(Peer& peer, const Call& call, std::span<const std::uint32_t> moved = {});
void send_null(Peer& peer, std::uint32_t xid, std::uint32_t credits = 8);

// A connection on which a NULL call was answered, whose thresholds are `size` in both directions;
// 0: without private data. Null: `why` says why.
// It takes messages of up to `receive_size` bytes, which may be more than it announces.
Task<std::unique_ptr<Peer>> greet(Context& context, std::uint32_t size, std::string& why,
                                  std::uint32_t receive_size = wire::kDefaultInlineThreshold);

struct RpcReply {
  bool decoded = false;
  oncrpc::ReplyStatus status{};
  Buffer results{};
};
RpcReply rpc_reply(const Buffer& payload);
// The results of a COMPOUND without chunks.
bool decode_compound(const Buffer& results, v4::COMPOUND4res& to);
// Whether the server ended the results of a COMPOUND where no more would go into the Reply.
bool ends_with_too_big(const Answer& answer);
// "an RDMA_MSG with PROG_UNAVAIL".
std::string described(const Answer& answer);
// Whether it is a Reply accepted with SUCCESS.
bool is_success(const Answer& answer);
// What the server has put into memory by the lengths that it returned.
std::string taken(const Exposed& memory, const wire::Segments& returned);

}  // namespace stag::conform::rpcrdma
