// Stream: the result of encoding. It has the small bytes of the XDR stream in one Buffer (the head)
// and references to the big opaques, which belong into gaps of the head. TCP sends rope();
// RPC-over-RDMA moves some items by chunk and sends without() them (RFC 8166 section 3.4).
//
// Ownership: a Stream never copies what it refers to. A borrowed Buffer stays borrowed, and its
// lender keeps it alive as long as the Stream or a Rope made from it. Copies of a Stream share the
// bytes.
#pragma once

#include <cstdint>
#include <span>

#include "base/inline_vector.h"
#include "base/rope.h"
#include "xdr/item.h"

namespace stag::xdr {

// One data item: a variable-length opaque or string, or the bytes behind the count of a marked
// array or the flag of a marked optional (RFC 8166 sections 3.4.4.1, 3.4.4.2). Its 0 to 3 bytes of
// padding are always in the head, right behind the data or gap.
struct Item {
  ItemId id = kNoItem;  // kNoItem if the Encoder does not watch this field
  // Offset of the first data byte in the complete stream: the Position of RFC 8166 section 3.4.5.
  std::uint32_t position = 0;
  std::uint32_t length = 0;       // bytes of data, without length word and padding
  std::uint32_t head_offset = 0;  // offset in head() of the data, or of its gap
  // The index of a watched item among all watched items, absent ones counted.
  std::uint32_t ordinal = 0;
  bool in_head = false;
  Rope bytes;  // the data, if it is not in the head
};

class Stream {
 public:
  using Items = InlineVector<Item, 2>;

  Stream() = default;
  // `size`: the bytes of `head` and of the items outside it. `items` are in order of position.
  // `places`: the number of watched items, absent ones counted. `ok` is false when a value broke a
  // bound of its type.
  Stream(Buffer&& head, std::uint32_t size, Items&& items, std::uint32_t places, bool ok)
      : head_(std::move(head)), items_(std::move(items)), size_(size), places_(places), ok_(ok) {}

  // A Stream that is not ok must not be sent.
  bool ok() const { return ok_; }
  // Bytes of the complete stream, a multiple of 4.
  std::uint32_t size() const { return size_; }
  const Buffer& head() const { return head_; }
  // All watched items and all items outside the head, in stream order.
  const Items& items() const { return items_; }
  // The number of watched items, absent ones counted.
  std::uint32_t places() const { return places_; }

  // The complete stream, by reference.
  Rope rope() const;
  // The data of one item, without length word and padding.
  Rope item_bytes(std::size_t index) const;
  // The stream without data and padding of the items with the indices `moved` (ascending); their
  // length words stay (RFC 8166 sections 3.4.5, 3.4.6).
  Rope without(std::span<const std::uint32_t> moved) const;
  // Appends views of the bytes of without(moved), for a caller that copies them at once.
  using Parts = InlineVector<Bytes, 8>;
  void add_parts_without(std::span<const std::uint32_t> moved, Parts& to) const;
  // Bytes of without(moved).
  std::uint32_t size_without(std::span<const std::uint32_t> moved) const;

  // Overwrites the word at `offset` of the complete stream, which lies in the head. Ropes made
  // before keep the old word.
  void patch_u32(std::uint32_t offset, std::uint32_t value);

  // For a Stream that is kept for long: copies the items outside the head, which may be slices of
  // much larger memory, and a head that fills less than a quarter of its Block. Throws
  // std::bad_alloc; the Stream is as good as before then.
  void unshare();
  // Bytes of the Blocks that it refers to; after unshare() all that it keeps.
  std::size_t block_bytes() const;

 private:
  template <class Head, class Data>
  void walk_without(std::span<const std::uint32_t> moved, Head head, Data data) const;

  Buffer head_;
  Items items_;
  std::uint32_t size_ = 0;
  std::uint32_t places_ = 0;
  bool ok_ = true;
};

}  // namespace stag::xdr
