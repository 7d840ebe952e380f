// Which errors the RFCs list for an operation, and which of them no client can provoke.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conform/nfs4/client.h"

namespace stag::conform::nfs4 {

// rfc_errors.cc.
extern const std::string_view kRfc7530Errors, kRfc8881Errors, kRfc7862Errors, kRfc8276Errors;

struct OperationErrors {
  v4::nfs_opnum4 operation;
  std::vector<v4::nfsstat4> errors;
};
// The errors of all operations of this minor version.
std::vector<OperationErrors> errors_of(std::uint32_t minor);

// "RFC 8881 18.13", where this minor version's RFCs define the operation.
std::string section_of(v4::nfs_opnum4 operation, std::uint32_t minor);

// Why a client that knows only a writable folder does not provoke the error of this operation. For
// an error that a case provokes nobody asks.
std::string why_listed(v4::nfs_opnum4 operation, v4::nfsstat4 error);

}  // namespace stag::conform::nfs4
