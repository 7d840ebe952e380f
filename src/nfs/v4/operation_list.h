// The operations of one COMPOUND, decoded.
#pragma once

#include "base/inline_vector.h"
#include "nfs/v4/argument_memory.h"
#include "nfs/v4/operation.h"

namespace stag::nfs::nfs4 {

class OperationList {
 public:
  struct Entry {
    std::uint32_t number = 0;        // as the results name it
    const Operation* row = nullptr;  // null: `refusal` is all there is to say
    void* arguments = nullptr;
    v4::nfsstat4 refusal = v4::NFS4_OK;

    // Whether it may be changing something while it waits. An OPEN that makes no file asks whether
    // its client is still there before it gives anything.
    bool may_change() const;
    // Whether it makes another filehandle the current one.
    bool puts_filehandle() const {
      return number == v4::OP_PUTFH || number == v4::OP_PUTROOTFH || number == v4::OP_PUTPUBFH ||
             number == v4::OP_RESTOREFH;
    }
  };

  OperationList() = default;
  OperationList(const OperationList&) = delete;
  ~OperationList() {
    if (arguments_end_) end_arguments();
  }

  // Reads tag, minor version and the first `most` operations. False: not even their number could be
  // read. The first operation that is malformed or unknown is the last one, with its refusal. A
  // COMPOUND of more than `most` is to be refused: no session grants so many.
  bool decode(xdr::Decoder& decoder, std::uint32_t most);

  // Refers to the Call's message, as sample() does.
  Bytes tag() const { return tag_; }
  std::uint32_t minor() const { return minor_; }
  // Those that the client sent, whether or not they were decoded.
  std::uint32_t sent() const { return sent_; }
  using Entries = InlineVector<Entry, 16>;
  const Entries& entries() const { return entries_; }
  // The first bytes behind the first operation, in which another request with the same SEQUENCE
  // would differ: all of them, but for data, lists and owners that are long.
  Bytes sample() const { return sample_; }

 private:
  void decode_one(xdr::Decoder& decoder, Entry& entry);
  void end_arguments();

  ArgumentMemory memory_;
  Bytes tag_;
  std::uint32_t minor_ = 0;
  std::uint32_t sent_ = 0;
  Bytes sample_;
  bool arguments_end_ = false;  // some have a destructor
  Entries entries_;
};

}  // namespace stag::nfs::nfs4
