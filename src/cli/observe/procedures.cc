#include "cli/observe/procedures.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "gss/credential.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs2.h"
#include "nfs/proto/nfs3.h"
#include "nfs/proto/nfs4.h"

namespace stag::cli {
namespace {

using ProcedureNames = std::span<const std::string_view>;

constexpr std::string_view kNfs2[] = {
    "NULL",   "GETATTR", "SETATTR", "ROOT", "LOOKUP",  "READLINK", "READ",  "WRITECACHE", "WRITE",
    "CREATE", "REMOVE",  "RENAME",  "LINK", "SYMLINK", "MKDIR",    "RMDIR", "READDIR",    "STATFS"};
constexpr std::string_view kNfs3[] = {
    "NULL",    "GETATTR",     "SETATTR", "LOOKUP", "ACCESS",   "READLINK", "READ",   "WRITE",
    "CREATE",  "MKDIR",       "SYMLINK", "MKNOD",  "REMOVE",   "RMDIR",    "RENAME", "LINK",
    "READDIR", "READDIRPLUS", "FSSTAT",  "FSINFO", "PATHCONF", "COMMIT"};
constexpr std::string_view kNfs4[] = {"NULL", "COMPOUND"};
constexpr std::string_view kAcl2[] = {"NULL", "GETACL", "SETACL", "GETATTR", "ACCESS"};
constexpr std::string_view kAcl3[] = {"NULL", "GETACL", "SETACL"};
constexpr std::string_view kMount[] = {"NULL",    "MNT",    "DUMP",      "UMNT",
                                       "UMNTALL", "EXPORT", "EXPORTALL", "PATHCONF"};
constexpr std::string_view kNlm[] = {
    "NULL",        "TEST",     "LOCK",     "CANCEL",     "UNLOCK",
    "GRANTED",     "TEST_MSG", "LOCK_MSG", "CANCEL_MSG", "UNLOCK_MSG",
    "GRANTED_MSG", "TEST_RES", "LOCK_RES", "CANCEL_RES", "UNLOCK_RES",
    "GRANTED_RES", "",         "",         "",           "",
    "SHARE",       "UNSHARE",  "NM_LOCK",  "FREE_ALL"};
constexpr std::string_view kNsm[] = {"NULL",      "STAT",       "MON",   "UNMON",
                                     "UNMON_ALL", "SIMU_CRASH", "NOTIFY"};

// How results begin.
enum class Begins { WithStatus, WithStatusOfMount, Otherwise };

struct ServedProgram {
  std::uint32_t number = 0;
  std::uint32_t version = 0;
  std::string_view name;
  ProcedureNames procedures;
  Begins begins = Begins::Otherwise;
  std::size_t first_slot = 0;
};

// Those that are called most come first.
constexpr auto kServed = [] {
  std::array<ServedProgram, 12> served{{
      {100003, 3, "nfs", kNfs3, Begins::WithStatus},
      {100003, 4, "nfs", kNfs4, Begins::WithStatus},
      {100003, 2, "nfs", kNfs2, Begins::WithStatus},
      {100227, 3, "nfsacl", kAcl3, Begins::WithStatus},
      {100227, 2, "nfsacl", kAcl2, Begins::WithStatus},
      {100005, 3, "mount", ProcedureNames(kMount).first(6), Begins::WithStatusOfMount},
      {100005, 2, "mount", kMount, Begins::WithStatusOfMount},
      {100005, 1, "mount", ProcedureNames(kMount).first(7), Begins::WithStatusOfMount},
      {100021, 4, "nlm", kNlm},
      {100021, 3, "nlm", kNlm},
      {100021, 1, "nlm", kNlm},
      {100024, 1, "nsm", kNsm},
  }};
  std::size_t slot = 1;
  for (ServedProgram& each : served) {
    each.first_slot = slot;
    slot += each.procedures.size();
  }
  return served;
}();
static_assert(kServed.back().first_slot + kServed.back().procedures.size() <= kProcedureSlots);

// Null for slot 0 and those behind the last.
constexpr const ServedProgram* served_at(std::size_t slot) {
  for (const ServedProgram& each : kServed)
    if (slot >= each.first_slot && slot - each.first_slot < each.procedures.size()) return &each;
  return nullptr;
}

// The kind of a status, in the bits above those that a status of a program has.
enum class StatusKind : std::uint32_t { Program, Accept, Auth, RpcMismatch };
constexpr std::uint32_t kKindBit = 24;

CallStatus status_number(StatusKind kind, std::uint32_t value) {
  constexpr std::uint32_t kValues = (1u << kKindBit) - 1;
  return static_cast<std::uint32_t>(kind) << kKindBit | (value & kValues);
}

std::string name_of_accept(std::uint32_t value) {
  static constexpr std::string_view kNames[] = {"SUCCESS",      "PROG_UNAVAIL", "PROG_MISMATCH",
                                                "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"};
  return value < std::size(kNames) ? std::string(kNames[value]) : fmt::format("{}", value);
}

std::string name_of_auth(std::uint32_t value) {
  static constexpr std::string_view kNames[] = {
      "AUTH_OK",           "AUTH_BADCRED",           "AUTH_REJECTEDCRED",    "AUTH_BADVERF",
      "AUTH_REJECTEDVERF", "AUTH_TOOWEAK",           "AUTH_INVALIDRESP",     "AUTH_FAILED",
      "AUTH_KERB_GENERIC", "AUTH_TIMEEXPIRE",        "AUTH_TKT_FILE",        "AUTH_DECODE",
      "AUTH_NET_ADDR",     "RPCSEC_GSS_CREDPROBLEM", "RPCSEC_GSS_CTXPROBLEM"};
  return value < std::size(kNames) ? std::string(kNames[value]) : fmt::format("{}", value);
}

std::string name_of_result(const ServedProgram& served, std::uint32_t value) {
  if (served.begins == Begins::WithStatusOfMount)
    return std::string(to_string(static_cast<nfs::mount3::mountstat3>(value)));
  if (served.version == 2) return std::string(to_string(static_cast<nfs::v2::nfsstat>(value)));
  if (served.version == 3) return std::string(to_string(static_cast<nfs::v3::nfsstat3>(value)));
  return name_of_nfs4_status(value);
}

}  // namespace

std::size_t procedure_slot(std::uint32_t program, std::uint32_t version, std::uint32_t procedure) {
  for (const ServedProgram& each : kServed)
    if (each.version == version && each.number == program)
      return procedure < each.procedures.size() ? each.first_slot + procedure : 0;
  return 0;
}

ProcedureName name_of_procedure(std::size_t slot) {
  if (slot == 0) return {"other", 0, "other"};
  const ServedProgram* const served = served_at(slot);
  if (served == nullptr) return {};
  return {served->name, served->version, served->procedures[slot - served->first_slot]};
}

bool begins_with_status(std::size_t slot) {
  static constexpr auto kKnown = [] {
    std::array<bool, kProcedureSlots> begins{};
    for (std::size_t i = 1; i < begins.size(); ++i) {
      const ServedProgram* const served = served_at(i);
      if (served == nullptr || i == served->first_slot) continue;
      begins[i] = served->begins == Begins::WithStatus ||
                  (served->begins == Begins::WithStatusOfMount && i == served->first_slot + 1);
    }
    return begins;
  }();
  return kKnown[slot];
}

CallStatus call_status(std::size_t slot, const oncrpc::ReplyStatus& reply,
                       std::uint32_t first_result) {
  if (reply.success()) {
    if (first_result == 0 || !begins_with_status(slot)) return kDone;
    return status_number(StatusKind::Program, first_result);
  }
  if (reply.reply == oncrpc::ReplyStat::MSG_ACCEPTED)
    return status_number(StatusKind::Accept, static_cast<std::uint32_t>(reply.accept));
  if (reply.reject == oncrpc::RejectStat::AUTH_ERROR)
    return status_number(StatusKind::Auth, static_cast<std::uint32_t>(reply.auth));
  return status_number(StatusKind::RpcMismatch, 0);
}

std::string name_of_status(std::size_t slot, CallStatus status) {
  if (status == kDone) return "OK";
  if (status == kDropped) return "dropped";
  const std::uint32_t value = status & ((1u << kKindBit) - 1);
  switch (static_cast<StatusKind>(status >> kKindBit)) {
    case StatusKind::Accept:
      return name_of_accept(value);
    case StatusKind::Auth:
      return name_of_auth(value);
    case StatusKind::RpcMismatch:
      return "RPC_MISMATCH";
    case StatusKind::Program:
      break;
  }
  const ServedProgram* const served = served_at(slot);
  return served == nullptr ? fmt::format("{}", value) : name_of_result(*served, value);
}

std::size_t operation_slot(std::uint32_t number) {
  // RFC 8276 has the last, OP_REMOVEXATTR.
  constexpr std::uint32_t kLast = 75;
  static_assert(kLast < kOperationSlots);
  return number >= nfs::v4::OP_ACCESS && number <= kLast ? number : 0;
}

std::string_view name_of_operation(std::size_t slot) {
  if (slot == 0) return "ILLEGAL";
  constexpr std::string_view kPrefix = "OP_";
  const std::string_view name =
      to_string(static_cast<nfs::v4::nfs_opnum4>(static_cast<std::uint32_t>(slot)));
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

bool has_protected_arguments(const oncrpc::CallHeader& header) {
  if (header.credential.flavor != oncrpc::AuthFlavor::RPCSEC_GSS) return false;
  const auto credential = gss::decode_credential(header.credential.body);
  return !credential || credential->service != gss::Service::none;
}

std::string name_of_nfs4_status(std::uint32_t status) {
  return std::string(to_string(static_cast<nfs::v4::nfsstat4>(status)));
}

}  // namespace stag::cli
