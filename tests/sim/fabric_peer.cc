#include "fabric_peer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "testing/fabric_contract/harness.h"

namespace stag::testing {

namespace {
constexpr std::uint64_t kFlows = 3;
}

FabricPeer::FabricPeer(std::unique_ptr<fabric::Connection> connection, fabric::Random& random,
                       std::function<void()> completed, std::function<void()> ended)
    : connection_(std::move(connection)),
      random_(random),
      completed_(std::move(completed)),
      ended_(std::move(ended)) {
  connection_->start(*this);
}

FabricPeer::~FabricPeer() {
  connection_.reset();
}

void FabricPeer::ask() {
  Request request;
  request.write = random_.chance(500);
  request.seed = static_cast<std::uint32_t>(random_.next());
  const std::size_t size = 1 + random_.below(random_.chance(30) ? 300'000 : 5000);
  request.memory = std::make_unique<Memory>(size);
  if (!request.write) *request.memory = pattern(size, request.seed);
  const auto exposed = request.write ? connection_->expose_sink(*request.memory)
                                     : connection_->expose_source(*request.memory);
  if (!exposed) return;
  request.remote = *exposed;
  Note note;
  note.write = request.write;
  note.id = next_id_++;
  note.seed = request.seed;
  note.memory = request.remote;
  requests_.emplace(note.id, std::move(request));
  send(note, std::nullopt);
}

void FabricPeer::give_up_something() {
  if (!connection_->parameters().discards) return;
  for (auto& [id, request] : requests_) {
    if (request.given_up || !random_.chance(300)) continue;
    request.given_up = true;
    const std::uint32_t handle = request.remote.handle;
    release(handle, std::move(request.memory), connection_->abandon(handle));
    break;
  }
}

fabric::Token FabricPeer::post(Work work) {
  const fabric::Token token = next_token_++;
  posted_.emplace(token, std::move(work));
  return token;
}

void FabricPeer::send(Note note, std::optional<std::uint32_t> invalidate) {
  note.flow = note.id % kFlows + (note.reply ? kFlows : 0);
  note.sequence = sent_[note.flow]++;
  Work work;
  work.memory = std::make_unique<Memory>(sizeof note);
  std::memcpy(work.memory->data(), &note, sizeof note);
  const Bytes bytes = *work.memory;
  connection_->send(Rope::borrow(bytes), invalidate, note.flow, post(std::move(work)));
}

void FabricPeer::on_receive(Buffer message, std::optional<std::uint32_t> invalidated) {
  ASSERT_FALSE(disconnected_);
  Note note;
  ASSERT_EQ(message.size(), sizeof note);
  std::memcpy(&note, message.data(), sizeof note);
  connection_->add_receive_credit({1, kCredit.size});
  EXPECT_EQ(note.sequence, received_[note.flow]++) << "out of order in flow " << note.flow;
  if (note.reply) return on_reply(note, invalidated);
  EXPECT_FALSE(invalidated.has_value());
  serve(note);
}

void FabricPeer::serve(const Note& note) {
  Work work;
  work.request = note;
  work.read = !note.write;
  if (!note.write) {
    work.memory = std::make_unique<Memory>(note.memory.length);
    const MutableBytes sink = *work.memory;
    connection_->read(note.memory, sink, note.id % kFlows + kFlows, post(std::move(work)));
    return;
  }
  work.memory = std::make_unique<Memory>(pattern(note.memory.length, note.seed));
  const Bytes all = *work.memory;
  // In two parts, which both are in place before the reply.
  const auto cut = static_cast<std::uint32_t>(random_.below(all.size()));
  const std::uint64_t flow = note.id % kFlows + kFlows;
  connection_->write(Rope::borrow(all.first(cut)), note.memory, flow, fabric::kNoToken);
  fabric::RemoteMemory rest = note.memory;
  rest.offset += cut;
  rest.length -= cut;
  // The first part is done when the second is: one flow is performed in order.
  connection_->write(Rope::borrow(all.subspan(cut)), rest, flow, post(std::move(work)));
  answer(note);
}

void FabricPeer::answer(const Note& request) {
  Note note = request;
  note.reply = true;
  const bool invalidate = connection_->parameters().remote_invalidation && random_.chance(500);
  send(note, invalidate ? std::optional(note.memory.handle) : std::nullopt);
}

void FabricPeer::on_reply(const Note& note, std::optional<std::uint32_t> invalidated) {
  const auto found = requests_.find(note.id);
  ASSERT_NE(found, requests_.end()) << "a reply to nothing";
  Request request = std::move(found->second);
  requests_.erase(found);
  const std::uint32_t handle = request.remote.handle;
  EXPECT_EQ(invalidated.value_or(handle), handle);
  if (request.write && !request.given_up) {
    EXPECT_TRUE(*request.memory == pattern(request.memory->size(), request.seed))
        << "a Send overtook its Write";
  }
  const fabric::Revocation revocation = connection_->revoke(handle);
  if (invalidated && !request.given_up) {
    EXPECT_EQ(revocation, fabric::Revocation::Done);
  }
  release(handle, std::move(request.memory), revocation);
  completed_();
}

void FabricPeer::release(std::uint32_t handle, std::unique_ptr<Memory> memory,
                         fabric::Revocation revocation) {
  // Memory of a Done revocation is freed here.
  if (revocation == fabric::Revocation::Pending && memory != nullptr)
    revoking_.emplace(handle, std::move(memory));
}

void FabricPeer::on_done(fabric::Token token, Reason outcome) {
  const auto found = posted_.find(token);
  ASSERT_NE(found, posted_.end()) << "an outcome of nothing";
  const Work work = std::move(found->second);
  posted_.erase(found);
  if (!work.read) return;
  if (outcome == Reason::None) {
    EXPECT_TRUE(*work.memory == pattern(work.memory->size(), work.request.seed));
  }
  if (outcome == Reason::None || outcome == Reason::Cancelled) answer(work.request);
}

void FabricPeer::on_revoked(std::uint32_t handle) {
  EXPECT_EQ(revoking_.erase(handle), 1u) << "revoked twice, or what was not asked for";
}

void FabricPeer::on_disconnect(Reason reason) {
  EXPECT_FALSE(disconnected_);
  disconnected_ = true;
  EXPECT_TRUE(posted_.empty()) << "operations without an outcome";
  EXPECT_TRUE(revoking_.empty()) << "revocations without an end";
  // No peer here breaks the rules.
  for (const Reason never : {Reason::ReceiveOverflow, Reason::MessageTooLong,
                             Reason::RemoteAccessDenied, Reason::RemoteAccessOutOfBounds})
    EXPECT_NE(reason, never);
  requests_.clear();
  ended_();
}

}  // namespace stag::testing
