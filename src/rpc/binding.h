// Upper-Layer Bindings (RFC 8166 section 6): constant tables that say, for each procedure of a
// program, which opaque items may travel apart from the message (DDP-eligible), and how large a
// Reply can be as a function of the arguments. No transport is known here. A procedure without an
// entry gets the default: no item is eligible, and the reply bound is that of its result type
// (RFC 8166 section 6: no binding, no reduction).
//
// Thread: tables are constant and used from any thread.
//
//   static constexpr std::array kTable{
//       bind<NFSPROC3_READ>({}, {item::READ3resok_data}, [](const READ3args& args) {
//         return ReplyBound{.payload_max = 128, .items = {{item::READ3resok_data, args.count}}};
//       }),
//   };
//   inline constexpr Binding kBinding{kTable};
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/inline_vector.h"
#include "xdr/item.h"
#include "xdr/procedure.h"

namespace stag::rpc {

// One eligible result item that a Reply may hold, in the order of the results.
struct ItemBound {
  xdr::ItemId item = 0;
  std::uint32_t max_length = 0;  // bytes of data, without pad; zero: wanted inline (payload_max)
};

// Which Write chunk each result item uses when an eligible item is missing from the results (an
// error arm). Shift: the next item takes the chunk (RFC 8166 section 4.3.2.2). ByIndex: the chunk
// at the index of the missing item stays unused (RFC 8267 section 6.4.1, for NFSv4).
enum class Pairing : std::uint8_t { Shift, ByIndex };

// The largest Reply that a Call can have.
struct ReplyBound {
  // Bytes of the largest Reply without the data (and pad) of `items`. A binding gives the encoded
  // results only; the Client adds the RPC reply header before it hands the bound to a Channel.
  std::uint32_t payload_max = 0;
  InlineVector<ItemBound, 2> items{};
  // Set by the Client from the procedure's binding.
  Pairing pairing = Pairing::Shift;

  // Bytes of the largest Reply when no item is reduced, with the pad of `items`.
  std::uint64_t total_max() const {
    std::uint64_t total = payload_max;
    for (const ItemBound& item : items) total += (std::uint64_t{item.max_length} + 3) / 4 * 4;
    return total;
  }
};

// The eligible items of one procedure's arguments or results: at most eight ids.
class EligibleItems {
 public:
  constexpr EligibleItems() = default;
  constexpr EligibleItems(std::initializer_list<xdr::ItemId> ids) {
    for (xdr::ItemId id : ids) ids_[size_++] = id;
  }
  constexpr std::span<const xdr::ItemId> ids() const { return {ids_.data(), size_}; }
  constexpr bool contains(xdr::ItemId id) const {
    for (xdr::ItemId own : ids())
      if (own == id) return true;
    return false;
  }

 private:
  std::array<xdr::ItemId, 8> ids_{};
  std::size_t size_ = 0;
};

// The binding of one procedure, type-erased; made by bind<P>() below.
struct ProcedureBinding {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  EligibleItems arguments;
  EligibleItems results;
  // Computes the bound from `args`, a P::Args. Null: the bound of the result type.
  ReplyBound (*reply_bound)(const void* args) = nullptr;
  Pairing pairing = Pairing::Shift;
  // The size of the Reply cannot be known in advance (RFC 8267 section 3.1): when the Reply chunk
  // proves too small, the Call may be sent again under a new XID with twice the Reply chunk, a few
  // times.
  bool retry_short_reply = false;
  // To run the procedure twice is not the same as once (RFC 1813 section 4.5): the server answers a
  // retransmission from its replay cache.
  bool non_idempotent = false;

  constexpr ProcedureBinding retry_short_replies() const {
    ProcedureBinding copy = *this;
    copy.retry_short_reply = true;
    return copy;
  }
  constexpr ProcedureBinding once_only() const {
    ProcedureBinding copy = *this;
    copy.non_idempotent = true;
    return copy;
  }
  constexpr ProcedureBinding paired(Pairing how) const {
    ProcedureBinding copy = *this;
    copy.pairing = how;
    return copy;
  }
};

// The entry of procedure P with these eligible items and the reply bound of its result type.
template <xdr::Procedure P>
constexpr ProcedureBinding bind(EligibleItems arguments = {}, EligibleItems results = {}) {
  ProcedureBinding binding;
  binding.program = P::program;
  binding.version = P::version;
  binding.procedure = P::number;
  binding.arguments = arguments;
  binding.results = results;
  return binding;
}

// The same with a reply bound. `Bound` is a lambda without captures: ReplyBound(const P::Args&).
template <xdr::Procedure P, class Bound>
constexpr ProcedureBinding bind(EligibleItems arguments, EligibleItems results, Bound) {
  ProcedureBinding binding = bind<P>(arguments, results);
  binding.reply_bound = [](const void* args) -> ReplyBound {
    return Bound{}(*static_cast<const typename P::Args*>(args));
  };
  return binding;
}

// The table of a program, or of several. Refers to an array that outlives it. A default Binding has
// no entries.
class Binding {
 public:
  constexpr Binding() = default;
  constexpr Binding(std::span<const ProcedureBinding> table) : table_(table) {}
  template <std::size_t N>
  constexpr Binding(const std::array<ProcedureBinding, N>& table) : table_(table) {}

  // Null when the procedure has no entry.
  constexpr const ProcedureBinding* find(std::uint32_t program, std::uint32_t version,
                                         std::uint32_t procedure) const {
    for (const ProcedureBinding& entry : table_)
      if (entry.procedure == procedure && entry.program == program && entry.version == version)
        return &entry;
    return nullptr;
  }

 private:
  std::span<const ProcedureBinding> table_;
};

}  // namespace stag::rpc
