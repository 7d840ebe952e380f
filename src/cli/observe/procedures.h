// The procedures that `stag serve` has, by number: a slot of a table for each, the names that
// metrics and listings give them, and the names of what their results begin with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "oncrpc/message.h"

namespace stag::cli {

// Where a procedure's counters are; slot 0 is for all that are not served.
inline constexpr std::size_t kProcedureSlots = 160;
std::size_t procedure_slot(std::uint32_t program, std::uint32_t version, std::uint32_t procedure);

struct ProcedureName {
  std::string_view program;  // "nfs", "mount", "other"
  std::uint32_t version = 0;
  std::string_view procedure;  // "GETATTR"; empty: the slot has no procedure
};
ProcedureName name_of_procedure(std::size_t slot);
// Whether its results begin with a status, which is 0 when all is well.
bool begins_with_status(std::size_t slot);

// Whether the arguments, as they came, are not what the procedure got (RFC 2203 5.3.2).
bool has_protected_arguments(const oncrpc::CallHeader& header);

// What a Call came to, as one number; 0: it was done.
using CallStatus = std::uint32_t;
inline constexpr CallStatus kDone = 0;
// There was no Reply.
inline constexpr CallStatus kDropped = 1u << 31;

// `first_result` is a status where the slot's results begin with one.
CallStatus call_status(std::size_t slot, const oncrpc::ReplyStatus& reply,
                       std::uint32_t first_result);
// "NFS3ERR_NOENT", "GARBAGE_ARGS", "dropped"; "OK" for kDone.
std::string name_of_status(std::size_t slot, CallStatus status);

// Of NFSv4: "GETATTR"; "ILLEGAL" for numbers that are none.
inline constexpr std::size_t kOperationSlots = 80;
std::size_t operation_slot(std::uint32_t number);
std::string_view name_of_operation(std::size_t slot);
std::string name_of_nfs4_status(std::uint32_t status);

}  // namespace stag::cli
