#include "conform/nfs4/errors.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <sstream>

namespace stag::conform::nfs4 {
namespace {

constexpr std::uint32_t kLastStatus = v4::NFS4ERR_XATTR2BIG;
constexpr std::uint32_t kLastOperation = v4::OP_REMOVEXATTR;

// The values of an enumeration of version 4, by what their names have after `prefix`.
template <class Value>
std::map<std::string, Value, std::less<>> by_name(std::string_view prefix, std::uint32_t last) {
  std::map<std::string, Value, std::less<>> named;
  for (std::uint32_t i = 0; i <= last; ++i) {
    const auto value = static_cast<Value>(i);
    const std::string_view name = to_string(value);
    if (name.starts_with(prefix)) named.emplace(name.substr(prefix.size()), value);
  }
  return named;
}

template <class Value>
Value called(const std::map<std::string, Value, std::less<>>& named, std::string_view name,
             Value otherwise) {
  const auto found = named.find(name);
  return found == named.end() ? otherwise : found->second;
}

void read_table(std::string_view text, std::vector<OperationErrors>& to) {
  static const auto statuses = by_name<v4::nfsstat4>("NFS4ERR_", kLastStatus);
  static const auto operations = by_name<v4::nfs_opnum4>("OP_", kLastOperation);
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (word.back() == ':') {
      word.pop_back();
      to.push_back({called(operations, word, v4::OP_ILLEGAL), {}});
      continue;
    }
    to.back().errors.push_back(called(statuses, word, v4::NFS4_OK));
  }
}

// The RFCs define the operations in the order of their numbers, and later ones leave some out.
std::uint32_t left_out_of_rfc8881(std::uint32_t number) {
  std::uint32_t count = 0;
  for (const std::uint32_t gone : {v4::OP_OPEN_CONFIRM, v4::OP_RENEW, v4::OP_SETCLIENTID,
                                   v4::OP_SETCLIENTID_CONFIRM, v4::OP_RELEASE_LOCKOWNER})
    if (gone < number) ++count;
  return count;
}

bool is_left_out_of_rfc8881(std::uint32_t number) {
  return left_out_of_rfc8881(number + 1) != left_out_of_rfc8881(number);
}

// Errors that depend on what the server has, or on what it chooses.
std::string_view state_of_server(v4::nfsstat4 error) {
  switch (error) {
    case v4::NFS4ERR_DELAY:
      return "the server says it when it chooses to";
    case v4::NFS4ERR_SERVERFAULT:
    case v4::NFS4ERR_IO:
    case v4::NFS4ERR_NXIO:
      return "a fault of the server's own";
    case v4::NFS4ERR_RESOURCE:
      return "a shortage of the server's own; of a COMPOUND that is too long see GETATTR";
    case v4::NFS4ERR_FHEXPIRED:
      return "needs a server of volatile filehandles";
    case v4::NFS4ERR_MOVED:
    case v4::NFS4ERR_LEASE_MOVED:
      return "needs a file system that has migrated";
    case v4::NFS4ERR_NOSPC:
    case v4::NFS4ERR_DQUOT:
      return "needs a store that is full, or a quota";
    case v4::NFS4ERR_ROFS:
      return "needs a file of a read-only export; a pseudo file system has folders only";
    case v4::NFS4ERR_XDEV:
    case v4::NFS4ERR_WRONG_LFS:
      return "needs files of two file systems";
    case v4::NFS4ERR_MLINK:
      return "needs more links than an object may have (maxlink), which are thousands";
    case v4::NFS4ERR_WRONGSEC:
      return "needs an export that refuses a flavor which the client has";
    case v4::NFS4ERR_WRONG_CRED:
      return "needs RPCSEC_GSS (SP4_MACH_CRED)";
    case v4::NFS4ERR_GRACE:
    case v4::NFS4ERR_RECLAIM_BAD:
    case v4::NFS4ERR_RECLAIM_CONFLICT:
      return "needs a server that has just restarted";
    case v4::NFS4ERR_EXPIRED:
      return "needs a copy that outlasts the lease of its client";
    case v4::NFS4ERR_STALE_STATEID:
      return "needs a server that has restarted";
    case v4::NFS4ERR_ADMIN_REVOKED:
      return "needs an administrator";
    case v4::NFS4ERR_DEADSESSION:
      return "the server chooses when a session dies";
    default:
      return {};
  }
}

std::string_view business_of_another(v4::nfs_opnum4 operation, v4::nfsstat4 error) {
  switch (error) {
    case v4::NFS4ERR_BADHANDLE:
      return "the PUTFH before it answers so";
    case v4::NFS4ERR_TOO_MANY_OPS:
    case v4::NFS4ERR_REQ_TOO_BIG:
    case v4::NFS4ERR_RETRY_UNCACHED_REP:
      return "is said of a whole COMPOUND, by its SEQUENCE: see there";
    case v4::NFS4ERR_REP_TOO_BIG_TO_CACHE:
    case v4::NFS4ERR_REP_TOO_BIG:
      return "its results are hardly longer than an error, or are in no session: see GETATTR";
    case v4::NFS4ERR_BADXDR:
      return operation == v4::OP_ILLEGAL ? "its arguments are unknown" : "it has no arguments";
    case v4::NFS4ERR_HASH_ALG_UNSUPP:
    case v4::NFS4ERR_ENCR_ALG_UNSUPP:
    case v4::NFS4ERR_BAD_SESSION_DIGEST:
      return "needs RPCSEC_GSS (SP4_SSV)";
    case v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION:
      return "needs a session that does not take every connection (SP4_MACH_CRED, SP4_SSV)";
    case v4::NFS4ERR_BACK_CHAN_BUSY:
    case v4::NFS4ERR_CB_PATH_DOWN:
    case v4::NFS4ERR_DELEG_ALREADY_WANTED:
      return "the server chooses whether to wait for callbacks, or to promise a delegation";
    case v4::NFS4ERR_PNFS_IO_HOLE:
    case v4::NFS4ERR_PNFS_NO_LAYOUT:
    case v4::NFS4ERR_UNKNOWN_LAYOUTTYPE:
      return "needs layouts (pNFS)";
    case v4::NFS4ERR_UNSAFE_COMPOUND:
      return "a server may find a COMPOUND unsafe, and need not";
    case v4::NFS4ERR_BAD_RANGE:
    case v4::NFS4ERR_LOCK_RANGE:
      return "needs a server that cannot lock every range";
    default:
      return {};
  }
}

// Of single pairs: the RFC names the error, and no arguments or objects of the operation that draw
// it.
std::string_view without_occasion(v4::nfs_opnum4 operation, v4::nfsstat4 error) {
  switch (error) {
    case v4::NFS4ERR_NOTSUPP:
      return "a server says it that does not offer the operation, whose other cases are then "
             "skipped";
    case v4::NFS4ERR_INVAL:
      return "none of its arguments can be invalid and decoded";
    case v4::NFS4ERR_WRONG_TYPE:
      return "what it asks for is there of objects of every type";
    case v4::NFS4ERR_LOCKED:
    case v4::NFS4ERR_OLD_STATEID:
    case v4::NFS4ERR_OPENMODE:
      return operation == v4::OP_OPEN ? "the stateid of a delegation does not change"
                                      : "it has no stateid";
    case v4::NFS4ERR_STALE_CLIENTID:
      return "the session of a client that is gone is NFS4ERR_BADSESSION";
    case v4::NFS4ERR_NOENT:
      return operation == v4::OP_LINK ? "the file has a filehandle, and a removed one is stale"
                                      : "a client that is not there is NFS4ERR_STALE_CLIENTID";
    case v4::NFS4ERR_NOXATTR:
    case v4::NFS4ERR_NAMETOOLONG:
    case v4::NFS4ERR_EXIST:
      return "it names no attribute, or none that is to be made";
    case v4::NFS4ERR_PERM:
      return "users may look at attributes or hear NFS4ERR_ACCESS";
    case v4::NFS4ERR_PARTNER_NO_AUTH:
      return "a second server need not read by it: see READ";
    default:
      return {};
  }
}

// What all errors of an operation need; it is asked before the reasons of the errors.
std::string_view need_of(v4::nfs_opnum4 operation) {
  switch (operation) {
    case v4::OP_LAYOUTCOMMIT:
    case v4::OP_LAYOUTGET:
    case v4::OP_LAYOUTRETURN:
    case v4::OP_LAYOUTERROR:
    case v4::OP_LAYOUTSTATS:
    case v4::OP_GETDEVICEINFO:
    case v4::OP_GETDEVICELIST:
      return "needs layouts (pNFS)";
    default:
      return {};
  }
}

std::string_view feature_of(v4::nfs_opnum4 operation, v4::nfsstat4 error) {
  if (error == v4::NFS4ERR_NOTSUPP || error == v4::NFS4ERR_INVAL) return {};
  switch (operation) {
    case v4::OP_GET_DIR_DELEGATION:
    case v4::OP_WANT_DELEGATION:
      return "needs a delegation, which a server gives when it chooses to";
    case v4::OP_DELEGRETURN:
      return "the stateid of a delegation does not change, and every other one is "
             "NFS4ERR_BAD_STATEID";
    case v4::OP_SET_SSV:
      return "needs RPCSEC_GSS (SP4_SSV)";
    case v4::OP_COPY_NOTIFY:
      return "who has the file open may read it, and every other stateid is NFS4ERR_BAD_STATEID";
    case v4::OP_OFFLOAD_CANCEL:
    case v4::OP_OFFLOAD_STATUS:
      return "the stateid of a copy does not change, and while it is valid there is a status";
    case v4::OP_OPENATTR:
      return "needs named attributes";
    default:
      return {};
  }
}

}  // namespace

std::vector<OperationErrors> errors_of(std::uint32_t minor) {
  std::vector<OperationErrors> rows;
  if (minor == 0) {
    read_table(kRfc7530Errors, rows);
    return rows;
  }
  read_table(kRfc8881Errors, rows);
  if (minor < 2) return rows;
  read_table(kRfc7862Errors, rows);
  read_table(kRfc8276Errors, rows);
  return rows;
}

std::string section_of(v4::nfs_opnum4 operation, std::uint32_t minor) {
  const std::uint32_t number = operation;
  if (minor == 0) {
    if (operation == v4::OP_ILLEGAL) return "RFC 7530 16.38";
    return number <= v4::OP_RELEASE_LOCKOWNER ? fmt::format("RFC 7530 16.{}", number - 2)
                                              : "RFC 7530 15.2.4";
  }
  if (operation == v4::OP_ILLEGAL) return "RFC 8881 18.52";
  if (is_left_out_of_rfc8881(number)) return "RFC 8881 17";
  if (number <= v4::OP_RECLAIM_COMPLETE)
    return fmt::format("RFC 8881 18.{}", number - 2 - left_out_of_rfc8881(number));
  if (minor == 1) return "RFC 8881 16.2.3";
  if (number <= v4::OP_CLONE) return fmt::format("RFC 7862 15.{}", number - 58);
  return fmt::format("RFC 8276 8.4.{}", number - 71);
}

std::string why_listed(v4::nfs_opnum4 operation, v4::nfsstat4 error) {
  for (const std::string_view reason :
       {need_of(operation), state_of_server(error), business_of_another(operation, error),
        feature_of(operation, error), without_occasion(operation, error)})
    if (!reason.empty()) return std::string(reason);
  return "no case asks for it";
}

}  // namespace stag::conform::nfs4
