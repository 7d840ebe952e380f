#include "rpc/program.h"

#include <algorithm>

namespace stag::rpc {

std::uint64_t CallContext::results_max() const {
  const std::uint64_t capacity = call_.reply_room.max();
  return capacity - std::min<std::uint64_t>(capacity, reply_header_size());
}

// RFC 8166 8.2.2.3: of results that are transformed none is reduced.
std::uint32_t CallContext::write_chunks() const {
  const Protection* const protection = authentication_.protection.get();
  return protection != nullptr && protection->transforms() ? 0 : call_.reply_room.write_chunks;
}

std::uint32_t CallContext::reply_header_size() const {
  const Protection* const protection = authentication_.protection.get();
  return oncrpc::kReplyHeaderSize + (protection == nullptr ? 0 : protection->reply_overhead());
}

std::uint64_t CallContext::call_size() const {
  std::uint64_t size = call_.payload.size();
  for (std::size_t i = 0; i < call_.items.size(); ++i) {
    const std::size_t length = call_.items.bytes(i).size();
    size += length + xdr_pad(length);
  }
  return size;
}

ReplayKey CallContext::replay_key() const {
  PlainArguments arguments{call_.payload.bytes(), oncrpc::header_size(header_), &call_.items};
  if (unwrapped_ != nullptr) arguments = {unwrapped_->bytes(), 0, nullptr};
  return rpc::replay_key(*call_.origin, header_, authentication_.caller, arguments);
}

namespace detail {

bool arguments_complete(xdr::Decoder& arguments, const ReducedItems& items) {
  return arguments.finish().ok() && items.all_taken();
}

}  // namespace detail

namespace {

// RFC 5531 section 12: procedure 0 takes no arguments and has no results. It ignores bytes behind
// the header, as other servers do, so that a client can measure a path with Calls of a chosen size.
// A chunk that stands for no item is malformed all the same.
class NullHandler final : public Handler {
 public:
  Eventual<HandlerOutcome> run(CallContext&, xdr::Decoder&, const ReducedItems& items,
                               xdr::Encoder&) override {
    HandlerOutcome outcome;
    outcome.encoded = items.all_taken();
    if (!outcome.encoded)
      outcome.status = oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS);
    return outcome;
  }
  std::optional<std::uint64_t> results_max(xdr::Decoder&, const ProcedureBinding*) const override {
    return 0;
  }
};

}  // namespace

Program::Program(std::uint32_t program, std::uint32_t version, Binding binding)
    : program_(program), version_(version), binding_(binding) {
  add(0, std::make_unique<NullHandler>());
}

Program& Program::add(std::uint32_t procedure, std::unique_ptr<Handler> handler) {
  STAG_CHECK(procedure < kProcedureNumbers);
  if (procedure >= entries_.size()) entries_.resize(procedure + 1);
  places_ |= handler->places();
  entries_[procedure] = {std::move(handler), binding_.find(program_, version_, procedure)};
  return *this;
}

const Program::Entry* Program::find(std::uint32_t procedure) const {
  if (procedure >= entries_.size() || entries_[procedure].handler == nullptr) return nullptr;
  return &entries_[procedure];
}

}  // namespace stag::rpc
