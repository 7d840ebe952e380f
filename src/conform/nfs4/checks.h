// What results must have in them beside their status. Each of these looks at the last result, and
// only where the COMPOUND is NFS4_OK.
#pragma once

#include <string>

#include "conform/nfs4/script.h"

namespace stag::conform::nfs4 {

// READ: all of this text, and eof as it is.
Check reads(std::string text, bool eof);
// READ of a file from its begin to its end: so many zeros, and as much of `text` as the last WRITE
// or COPY said that it wrote.
Check reads_what_was_written(std::size_t zeros, std::string text);
// READ_PLUS from the first byte: text and holes without a gap. It may be less than all (RFC 7862
// 15.10.3).
Check reads_plus(std::string text);
// WRITE of so many bytes. A server may write fewer of them, and commits them as it was asked to at
// least (RFC 8881 18.32.3).
Check wrote(std::uint32_t bytes, v4::stable_how4 stable = v4::FILE_SYNC4);
// A COPY that was to be over when it is answered, of so many bytes.
Check copied(std::uint64_t bytes);
// GETATTR.
Check attributes_are(v4::fattr4 expected);
// READLINK.
Check leads_to(std::string target);
// GETXATTR, and LISTXATTRS, which may have others, too.
Check xattr_is(std::string value);
Check xattrs_have(std::string name);

// Proofs: what is called so in "own" has this type; is what the last GETATTR was of; is gone.
Proof has_type(std::string name, v4::nfs_ftype4 type);
Proof names_the_same(std::string name);
Proof name_is_gone(std::string name);
// And "x" is gone.
Proof was_renamed_to(std::string name);
// The content of an open file, from its begin to its end.
Proof holds(std::string file, Check check);

}  // namespace stag::conform::nfs4
