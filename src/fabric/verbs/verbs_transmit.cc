// What a VerbsConnection posts to its send queue.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "fabric/verbs/counted_region.h"
#include "fabric/verbs/verbs_connection.h"
#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {

// Requests that complete silently before one that is signalled.
constexpr std::uint32_t kSilent = 15;
// Of one request; a long Write is several.
constexpr std::size_t kMostPerRequest = 1 << 20;

ibv_wr_opcode opcode_of(const Work& work) {
  switch (work.kind) {
    case WorkKind::Send:
      return work.invalidates ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
    case WorkKind::Read:
      return IBV_WR_RDMA_READ;
    case WorkKind::Bind:
      return IBV_WR_BIND_MW;
    case WorkKind::Invalidate:
      return IBV_WR_LOCAL_INV;
    default:
      return IBV_WR_RDMA_WRITE;
  }
}

// Whether the user waits for it, or something is given back after it.
bool wants_completion(const PostedWork& work) {
  return work.token != kNoToken || work.region != nullptr || !work.source.empty() ||
         work.kind == WorkKind::Read || work.kind == WorkKind::Invalidate ||
         work.kind == WorkKind::Marker;
}

bool on_the_wire(const PostedWork& work) {
  return work.kind != WorkKind::Bind && work.kind != WorkKind::Invalidate;
}

// The bytes of a Rope, piece by piece.
using Parts = InlineVector<Bytes, 4>;

Parts parts_of(const Rope& rope) {
  Parts parts;
  for (const Buffer& piece : rope.pieces()) parts.push_back(piece.bytes());
  return parts;
}

void copy_parts(std::span<const Bytes> parts, std::byte* to) {
  for (const Bytes part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
}

std::byte* writable(const std::byte* data) {
  // rdma-core has no addresses of constant memory.
  return const_cast<std::byte*>(data);
}

}  // namespace

void VerbsConnection::post(Work& work) {
  // What is no message may overtake those that are held back.
  const bool now = has_slot() && (may_speak() ? pending_.empty() : !on_the_wire(work));
  if (now ? posted_.full() : pending_.full()) make_room_for(work, now);
  now ? submit(work) : pending_.push(std::move(work));
}

void VerbsConnection::make_room_for(PostedWork& work, bool now) try {
  now ? posted_.grow() : pending_.grow();
} catch (const std::bad_alloc&) {
  release(work);
  throw;
}

void VerbsConnection::pump() {
  if (pending_.empty() || !may_speak() || state_ == State::Ended) return;
  collecting_ = true;
  while (!pending_.empty() && has_slot()) {
    if (posted_.full()) {
      stop_collecting();
      posted_.grow();
      collecting_ = true;
    }
    Work work = pending_.pop();
    submit(work);
  }
  stop_collecting();
}

// Inline bytes are the caller's again when they are posted. A message waits only for those behind
// it that leave at once, too.
inline bool VerbsConnection::may_wait(const Work& work) const {
  return !work.inlined && (work.kind != WorkKind::Send || !pending_.empty());
}

inline void VerbsConnection::post_requests(ibv_send_wr* first) {
  batched_ = false;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(queue_pair_->get(), first, &bad);
  // siw takes no more requests when the peer has gone; its end has not been told yet.
  if (error != 0)
    return end_later(error == ENOTCONN ? Reason::ConnectionLost : Reason::VerbsFailed);
  // Not before: a device is told the key that the window had, too.
  for (const ibv_send_wr* each = first; each != nullptr; each = each->next)
    if (each->opcode == IBV_WR_BIND_MW) each->bind_mw.mw->rkey = each->bind_mw.rkey;
}

void VerbsConnection::submit(Work& work) {
  ibv_send_wr request;  // what its opcode does not use stays as it is
  request.wr_id = first_ + posted_.size();
  request.next = nullptr;
  request.sg_list = work.memory.data();
  request.num_sge = work.pieces;
  request.opcode = opcode_of(work);
  request.send_flags = work.inlined ? IBV_SEND_INLINE : 0;
  if (work.kind == WorkKind::Bind) {
    request.imm_data = 0;  // librxe refuses any other
    request.bind_mw.mw = work.window;
    request.bind_mw.rkey = work.key;
    request.bind_mw.bind_info = work.binding;
  } else if (work.kind == WorkKind::Read || work.kind == WorkKind::Write) {
    request.wr.rdma.remote_addr = work.remote.offset;
    request.wr.rdma.rkey = work.remote.handle;
  } else {
    request.invalidate_rkey = work.key;
  }
  const bool last_slot = posted_.size() + 1 >= queue_pair_->slots();
  const bool signalled =
      wants_completion(work) || unsignalled_ >= kSilent || last_slot || state_ == State::Closing;
  if (signalled) request.send_flags |= IBV_SEND_SIGNALED;
  if (work.kind == WorkKind::Send) request.send_flags |= IBV_SEND_SOLICITED;
  unsignalled_ = signalled ? 0 : unsignalled_ + 1;
  if (collecting_ && may_wait(work))
    put_aside(request);
  else
    post_requests(batched_ ? queue_pair_->batch().end_with(request) : &request);
  for (std::size_t i = 0; i < work.pieces; ++i) work.length += work.memory[i].length;
  // Also of one that was not posted: it ends with the connection.
  posted_.push(std::move(work));
}

void VerbsConnection::put_aside(const ibv_send_wr& request) {
  SendBatch& batch = queue_pair_->batch();
  if (batch.full()) post_batch();
  batch.add(request);
  batched_ = true;
}

void VerbsConnection::post_batch() {
  post_requests(queue_pair_->batch().take());
}

// Not in line: it is what few devices need.
[[gnu::noinline]] bool VerbsConnection::join_inline(Work& work, std::span<const Bytes> parts,
                                                    std::size_t size) {
  if (size == 0) return true;
  copy_parts(parts, queue_pair_->inline_bytes());
  work.add(queue_pair_->inline_bytes(), size, 0);
  return true;
}

bool VerbsConnection::copy_into(Work& work, std::span<const Bytes> parts, std::size_t size) {
  // The device takes inline bytes before the call that posts them returns.
  const bool inlined = size <= queue_pair_->max_inline() && pending_.empty() && may_speak() &&
                       has_slot() && parts.size() <= queue_pair_->max_pieces();
  if (!inlined) return copy_into_blocks(work, parts, size);
  work.inlined = true;
  if (queue_pair_->traits().one_inline_piece) return join_inline(work, parts, size);
  for (const Bytes part : parts)
    if (!part.empty()) work.add(writable(part.data()), part.size(), 0);
  return true;
}

// What takes less than half a block shares one with those behind it: a peer that offers many short
// segments has no more registered here than twice what is written there, and a block or two.
bool VerbsConnection::copy_into_shared_block(Work& work, std::span<const Bytes> parts,
                                             std::size_t size) {
  BlockPool& pool = queue_pair_->domain().send_blocks();
  if (filling_ == nullptr || pool.block_size() - filled_ < size) {
    // The one before is given back by the last request that uses it.
    filling_ = pool.take();
    if (filling_ == nullptr) return false;
    filling_->next = nullptr;
    filling_->users = 0;
    filled_ = 0;
  }
  work.blocks = filling_;
  ++filling_->users;
  std::byte* at = filling_->data + std::exchange(filled_, filled_ + size);
  work.add(at, size, filling_->key);
  copy_parts(parts, at);
  return true;
}

bool VerbsConnection::copy_into_blocks(Work& work, std::span<const Bytes> parts, std::size_t size) {
  BlockPool& pool = queue_pair_->domain().send_blocks();
  if (size != 0 && size < pool.block_size() / 2) return copy_into_shared_block(work, parts, size);
  std::size_t room = 0;
  std::byte* at = nullptr;
  for (Bytes part : parts) {
    while (!part.empty()) {
      if (room == 0) {
        RegisteredBlock* block = pool.take();
        if (block == nullptr) return release(work), false;
        block->next = std::exchange(work.blocks, block);
        block->users = 1;
        work.add(at = block->data, 0, block->key);
        room = pool.block_size();
      }
      const std::size_t step = std::min(room, part.size());
      std::memcpy(at, part.data(), step);
      work.memory[work.pieces - 1u].length += static_cast<std::uint32_t>(step);
      at += step;
      room -= step;
      part = part.subspan(step);
    }
  }
  return true;
}

bool VerbsConnection::use_kept(Work& work, Bytes memory, int access) {
  // Kept memory has no remote right, which the sink of a Read on iWARP needs.
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) return false;
  work.region = queue_pair_->domain().kept_region(memory.data(), memory.size(),
                                                  (access & IBV_ACCESS_LOCAL_WRITE) != 0);
  if (work.region != nullptr) work.add(writable(memory.data()), memory.size(), work.region->lkey);
  return work.region != nullptr;
}

bool VerbsConnection::register_for(Work& work, Bytes memory, int access) {
  if (use_kept(work, memory, access)) return true;
  work.region = register_memory(functions(), queue_pair_->domain().pd(), writable(memory.data()),
                                memory.size(), access);
  if (work.region == nullptr) return false;
  work.add(writable(memory.data()), memory.size(), work.region->lkey);
  return true;
}

void VerbsConnection::send(Rope message, std::optional<std::uint32_t> invalidate, Flow,
                           Token token) {
  if (state_ != State::Open) return post_late(token);
  Work work;
  if (message.size() <= queue_pair_->max_copied()) {
    if (!copy_into(work, parts_of(message), message.size()))
      return refuse(token, Reason::OutOfMemory);
    return post_send(work, invalidate, token);
  }
  work.source = message.flatten();
  if (!register_for(work, work.source.bytes(), 0))
    return refuse(token, reason_of_registration_error(errno, message.size()));
  post_send(work, invalidate, token);
}

void VerbsConnection::send_copy(std::span<const Bytes> parts,
                                std::optional<std::uint32_t> invalidate, Flow flow, Token token) {
  const std::size_t size = total_size(parts);
  if (state_ != State::Open || size > queue_pair_->max_copied())
    return Connection::send_copy(parts, invalidate, flow, token);
  Work work;
  if (!copy_into(work, parts, size)) return refuse(token, Reason::OutOfMemory);
  post_send(work, invalidate, token);
}

void VerbsConnection::post_send(Work& work, std::optional<std::uint32_t> invalidate, Token token) {
  STAG_CHECK(!invalidate || parameters_.remote_invalidation);
  work.kind = WorkKind::Send;
  work.token = token;
  work.invalidates = invalidate.has_value();
  work.key = invalidate.value_or(0);
  ++traffic_.sends_out;
  post(work);
}

void VerbsConnection::write(Rope source, RemoteMemory sink, Flow, Token token) {
  STAG_CHECK(source.size() <= sink.length);
  if (state_ != State::Open) return post_late(token);
  ++traffic_.writes_out;
  traffic_.write_bytes_out += source.size();
  if (source.size() > queue_pair_->max_copied()) return write_registered(source, sink, token);
  Work work;
  if (!copy_into(work, parts_of(source), source.size())) return refuse(token, Reason::OutOfMemory);
  if (!work.inlined) traffic_.payload_bytes_copied += source.size();
  work.kind = WorkKind::Write;
  work.token = token;
  work.remote = sink;
  post(work);
}

void VerbsConnection::write_registered(const Rope& source, RemoteMemory sink, Token token) {
  const std::size_t most =
      std::min<std::size_t>(kMostPerRequest, queue_pair_->traits().max_message);
  std::size_t left = source.size();
  for (const Buffer& piece : source.pieces()) {
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t step = std::min(most, piece.size() - at);
      Work work;
      work.kind = WorkKind::Write;
      work.remote = sink;
      work.source = piece.slice(at, step);
      if (!register_for(work, work.source.bytes(), 0))
        return refuse(token, reason_of_registration_error(errno, step));
      at += step;
      sink.offset += step;
      left -= step;
      if (left == 0) work.token = token;
      post(work);
    }
  }
}

void VerbsConnection::read(RemoteMemory source, MutableBytes sink, Flow, Token token) {
  STAG_CHECK(sink.size() <= source.length);
  if (state_ != State::Open) return post_late(token);
  if (parameters_.outbound_reads == 0) return refuse(token, Reason::ReadsUnavailable);
  ++traffic_.reads_out;
  const DeviceTraits& traits = queue_pair_->traits();
  BlockPool& pool = queue_pair_->domain().send_blocks();
  const std::size_t most = std::min<std::size_t>(kMostPerRequest, traits.max_message);
  // On iWARP the sink's own key travels, and the peer writes there.
  const int access = IBV_ACCESS_LOCAL_WRITE | (traits.iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
  do {
    Work work;
    work.kind = WorkKind::Read;
    work.remote = source;
    const MutableBytes part = sink.first(std::min(most, sink.size()));
    sink = sink.subspan(part.size());
    source.offset += part.size();
    if (sink.empty()) work.token = token;
    const bool through_block = !part.empty() && !traits.iwarp && part.size() <= pool.block_size();
    if (through_block && use_kept(work, part, access)) {
      // Not even copied.
    } else if (RegisteredBlock* block = through_block ? pool.take() : nullptr) {
      block->next = nullptr;
      block->users = 1;
      work.blocks = block;
      work.add(block->data, part.size(), block->key);
      work.sink = part;
    } else if (!part.empty() && !register_for(work, part, access)) {
      return refuse(token, reason_of_registration_error(errno, part.size()));
    }
    post(work);
  } while (!sink.empty());
}

void VerbsConnection::refuse(Token token, Reason reason) {
  end_later(reason);
  post_late(token);
}

}  // namespace stag::fabric
