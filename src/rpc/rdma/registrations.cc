#include "rpc/rdma/registrations.h"

#include <algorithm>

namespace stag::rpc::rdma {
namespace {

std::uint32_t registrations_of(std::size_t length, std::uint32_t max) {
  return static_cast<std::uint32_t>((length + max - 1) / max);
}

rpcrdma::Segment segment_of(const fabric::RemoteMemory& memory) {
  return {memory.handle, memory.length, memory.offset};
}

}  // namespace

std::uint32_t segments_of(const Rope& bytes, std::uint32_t max_registration) {
  std::uint32_t count = 0;
  for (const Buffer& piece : bytes.pieces())
    count += registrations_of(piece.size(), max_registration);
  return count;
}

Result<rpcrdma::Segments, Reason> Registrations::expose_source(fabric::Connection& connection,
                                                               const Rope& bytes) {
  const std::size_t max = connection.parameters().max_registration;
  rpcrdma::Segments segments;
  for (const Buffer& piece : bytes.pieces())
    for (std::size_t at = 0; at < piece.size(); at += max) {
      const Bytes part = piece.bytes().subspan(at, std::min(max, piece.size() - at));
      make_room();
      Result<fabric::RemoteMemory, Reason> memory = connection.expose_source(part);
      if (!memory) return Failure{memory.error()};
      handles_.push_back(memory->handle);
      segments.push_back(segment_of(*memory));
    }
  return segments;
}

Result<rpcrdma::Segments, Reason> Registrations::expose_sink(fabric::Connection& connection,
                                                             MutableBytes memory) {
  const std::size_t max = connection.parameters().max_registration;
  rpcrdma::Segments segments;
  for (std::size_t at = 0; at < memory.size(); at += max) {
    const MutableBytes part = memory.subspan(at, std::min(max, memory.size() - at));
    make_room();
    Result<fabric::RemoteMemory, Reason> exposed = connection.expose_sink(part);
    if (!exposed) return Failure{exposed.error()};
    handles_.push_back(exposed->handle);
    segments.push_back(segment_of(*exposed));
  }
  return segments;
}

// Where there is no memory for a handle, nothing is exposed that nobody would revoke.
void Registrations::make_room() {
  if (handles_.size() % kHandles == 0) handles_.reserve(handles_.size() + kHandles);
}

// Asks for no memory, and what the fabric has none to revoke is still held.
void Registrations::revoke(fabric::Connection& connection,
                           std::optional<std::uint32_t> invalidated) {
  for (std::size_t i = 0; i < handles_.size();) {
    const std::uint32_t handle = handles_[i];
    if (handle != invalidated && connection.revoke(handle) == fabric::Revocation::Pending)
      ++i;
    else
      forget(i);
  }
}

void Registrations::forget(std::size_t index) {
  handles_[index] = handles_.back();
  handles_.pop_back();
}

InlineVector<std::uint32_t, 4> Registrations::abandon(fabric::Connection& connection) {
  InlineVector<std::uint32_t, 4> all = handles_;
  for (std::size_t i = 0; i < handles_.size();)
    connection.abandon(handles_[i]) == fabric::Revocation::Pending ? static_cast<void>(++i)
                                                                   : forget(i);
  return all;
}

bool Registrations::on_revoked(std::uint32_t handle) {
  auto found = std::find(handles_.begin(), handles_.end(), handle);
  if (found == handles_.end()) return false;
  forget(static_cast<std::size_t>(found - handles_.begin()));
  return true;
}

}  // namespace stag::rpc::rdma
