#include "rpc/program.h"

namespace stag::rpc {
namespace detail {

void encode_success_header(CallContext& context, xdr::Encoder& results) {
  oncrpc::encode_success(results, context.header().xid);
}

bool arguments_complete(xdr::Decoder& arguments, const ReducedItems& items) {
  return arguments.finish().ok() && items.all_taken();
}

}  // namespace detail

namespace {

// RFC 5531 section 12: procedure 0 takes no arguments and gives no results. Bytes behind the header
// are none of its business: other servers do not look at them either, and who measures a path with
// Calls of a chosen size gets its answer. A chunk that stands for no item is malformed all the
// same.
class NullHandler final : public Handler {
 public:
  bool run_at_once(CallContext& context, const ReducedItems& items, xdr::Encoder& results,
                   Outcome& outcome) override {
    outcome.encoded = items.all_taken();
    if (outcome.encoded)
      detail::encode_success_header(context, results);
    else
      outcome.status = oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS);
    return true;
  }
  Task<Outcome> run(CallContext& context, xdr::Decoder&, const ReducedItems& items,
                    xdr::Encoder& results) override {
    Outcome outcome;
    run_at_once(context, items, results, outcome);
    co_return outcome;
  }
};

}  // namespace

Program::Program(std::uint32_t program, std::uint32_t version, Binding binding)
    : program_(program), version_(version), binding_(binding) {
  add(0, std::make_unique<NullHandler>());
}

Program& Program::add(std::uint32_t procedure, std::unique_ptr<Handler> handler) {
  STAG_CHECK(procedure < 4096);  // a table, not a map: procedure numbers are small
  if (procedure >= entries_.size()) entries_.resize(procedure + 1);
  entries_[procedure] = {std::move(handler), binding_.find(program_, version_, procedure)};
  return *this;
}

const Program::Entry* Program::find(std::uint32_t procedure) const {
  if (procedure >= entries_.size() || entries_[procedure].handler == nullptr) return nullptr;
  return &entries_[procedure];
}

}  // namespace stag::rpc
