// What encoding yields: the small bytes of the XDR stream in one Buffer (the head) and references
// to its big opaques, which stand in gaps of the head. TCP sends rope(); RPC-over-RDMA moves some
// items by chunk and sends without() them (RFC 8166 3.4). Nothing here copies what is referenced: a
// Buffer that was borrowed stays borrowed, and its lender keeps it alive as long as the Stream or a
// Rope made from it. Copying a Stream copies references.
#pragma once

#include <cstdint>
#include <span>

#include "base/inline_vector.h"
#include "base/rope.h"
#include "xdr/item.h"

namespace stag::xdr {

// One variable-length opaque or string, or what follows the count of a marked array or the flag of
// a marked optional (RFC 8166 3.4.4.1, 3.4.4.2). Its 0 to 3 bytes of padding are always in the
// head, right after the data or gap.
struct Item {
  ItemId id = kNoItem;  // kNoItem when the Encoder was not asked to watch this field.
  std::uint32_t position =
      0;  // Of the first data byte in the complete stream: Position (RFC 8166 3.4.5).
  std::uint32_t length = 0;       // Of the data, without length word and padding.
  std::uint32_t head_offset = 0;  // Where in head() the data lies, or where its gap is.
  // Of a watched item: its place among all watched ones, those that are absent counted.
  std::uint32_t ordinal = 0;
  bool in_head = false;
  Rope bytes;  // The data, when it is not in the head.
};

class Stream {
 public:
  using Items = InlineVector<Item, 2>;

  Stream() = default;
  // `items` in order of position; `places`: of watched items, absent ones counted. `ok` is false
  // when a value broke a bound of its type.
  Stream(Buffer&& head, Items&& items, std::uint32_t places, bool ok);

  // A Stream that is not ok must not be sent.
  bool ok() const { return ok_; }
  // Bytes of the complete stream, a multiple of 4.
  std::uint32_t size() const { return size_; }
  const Buffer& head() const { return head_; }
  // All watched items and all that stand outside the head, in stream order.
  const Items& items() const { return items_; }
  // How many watched items there are, absent ones counted.
  std::uint32_t places() const { return places_; }

  // The complete stream.
  Rope rope() const;
  // The data of one item, without length word and padding.
  Rope item_bytes(std::size_t index) const;
  // The stream without data and padding of the items with these indices (ascending); their length
  // words stay (RFC 8166 3.4.5, 3.4.6).
  Rope without(std::span<const std::uint32_t> moved) const;
  // The same when all of it lies side by side in the head, as it mostly does; else empty.
  Bytes plain_without(std::span<const std::uint32_t> moved) const;
  std::uint32_t size_without(std::span<const std::uint32_t> moved) const;

  // Overwrites the word at `offset` of the complete stream, which must lie in the head. Ropes
  // already made keep theirs.
  void patch_u32(std::uint32_t offset, std::uint32_t value);

 private:
  Buffer head_;
  Items items_;
  std::uint32_t size_ = 0;
  std::uint32_t places_ = 0;
  bool ok_ = true;
};

}  // namespace stag::xdr
