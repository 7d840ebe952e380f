#include "c/support.h"

namespace stag::c {
namespace {

template <std::size_t N>
void copy_text(std::string_view from, char (&to)[N]) {
  to[from.copy(to, N - 1)] = '\0';
}

// Whether a connection could not be made, or ended, because of it. A caller may connect again and
// repeat its call then.
bool is_of_a_connection(Reason reason) {
  switch (reason) {
    case Reason::RpcServerSilent:
    case Reason::RpcUnanswered:
    case Reason::RpcConnectionLost:
    case Reason::RpcPeerClosed:
    case Reason::RpcPeerTooSlow:
    case Reason::RpcTooManyConnections:
    case Reason::TooManyThreads:
      return true;
    case Reason::LoopFunctionFailed:
    case Reason::WorkersBusy:
    case Reason::RegistrationsExhausted:
    case Reason::AbandonedMemoryTooLong:
      return false;
    default:
      // Those of net, iwarp, fabric and fabric/verbs.
      return reason >= Reason::ConnectionRefused && reason <= Reason::VerbsReceiverNotReady;
  }
}

stag_status status_of(const rpc::CallError& error) {
  if (error.kind == rpc::CallError::Kind::Answered) return STAG_REFUSED;
  if (error.kind == rpc::CallError::Kind::Malformed) return STAG_MALFORMED;
  switch (error.reason) {
    case Reason::TimedOut:
      return error.sent ? STAG_TIMED_OUT : STAG_UNREACHABLE;
    case Reason::Cancelled:
    case Reason::Shutdown:
      return STAG_CANCELLED;
    case Reason::OutOfMemory:
      return STAG_NO_MEMORY;
    // The server has not taken the arguments, or has not found room for its results.
    case Reason::RdmaPeerRefusedChunks:
    case Reason::RpcRecordTooLong:
    // Nothing was sent, or no server of ours takes it.
    case Reason::RpcCallTooLong:
    case Reason::RpcArgumentsUnencodable:
    case Reason::RdmaCallTooLarge:
    case Reason::RdmaSegmentsTooMany:
    case Reason::RegistrationTooLong:
    case Reason::DatagramTooLong:
      return STAG_TOO_LONG;
    default:
      if (!is_of_a_connection(error.reason)) return STAG_FAILED;
      return error.sent ? STAG_TIMED_OUT : STAG_UNREACHABLE;
  }
}

constexpr std::uint32_t kFlags = STAG_ARGUMENTS_BULK | STAG_RESULTS_BULK | STAG_ONCE;
constexpr std::uint32_t kProcedures = 4096;  // rpc::Program

}  // namespace

stag_error error_of(stag_status status, std::string_view text, std::string_view reason) {
  stag_error error{};
  error.size = sizeof error;
  error.status = status;
  copy_text(text, error.text);
  copy_text(reason, error.reason);
  return error;
}

stag_error error_of(const rpc::CallError& error) {
  const bool named = error.reason != Reason::None;
  stag_error result = error_of(status_of(error), error.message(),
                               named ? to_string(error.reason) : std::string_view());
  if (error.kind == rpc::CallError::Kind::Answered &&
      error.status.reply == oncrpc::ReplyStat::MSG_ACCEPTED)
    result.accept_stat = static_cast<std::uint32_t>(error.status.accept);
  return result;
}

stag_error error_of(Reason reason, std::string_view where) {
  const stag_status status = reason == Reason::OutOfMemory ? STAG_NO_MEMORY : STAG_UNREACHABLE;
  std::string text(where);
  text += ": ";
  text += info(reason).text;
  return error_of(status, text, to_string(reason));
}

ProgramTable::ProgramTable(const stag_program* program) {
  if (!has_size(program)) {
    error_ = "the program's size is not set";
    return;
  }
  const stag_program known_program = known(program);
  program_ = known_program.program;
  version_ = known_program.version;
  const auto* next = reinterpret_cast<const char*>(known_program.procedures);
  if (next == nullptr) error_ = "the program has no procedures";
  for (std::size_t i = 0; i < known_program.procedure_count && error_.empty(); ++i) {
    const auto* procedure = reinterpret_cast<const stag_procedure*>(next);
    error_ = has_size(procedure) ? add(known(procedure)) : "a procedure's size is not set";
    // The table is laid out as its caller knows the struct.
    next += procedure->size;
  }
}

std::string_view ProgramTable::add(const stag_procedure& procedure) {
  if (procedure.number == 0 || procedure.number >= kProcedures)
    return "a procedure's number is not from 1 to 4095";
  if (find(procedure.number) != nullptr) return "the program has a procedure twice";
  if ((procedure.flags & ~kFlags) != 0) return "a procedure has a flag that is not known here";
  if (procedure.arguments_head % 4 != 0 || procedure.results_head % 4 != 0)
    return "the head of arguments or results is no multiple of 4 bytes";
  rpc::ProcedureBinding binding;
  binding.program = program_;
  binding.version = version_;
  binding.procedure = procedure.number;
  if ((procedure.flags & STAG_ARGUMENTS_BULK) != 0) binding.arguments = {kArgumentsBulk};
  if ((procedure.flags & STAG_RESULTS_BULK) != 0) binding.results = {kResultsBulk};
  binding.non_idempotent = (procedure.flags & STAG_ONCE) != 0;
  bindings_.push_back(binding);
  procedures_.push_back(procedure);
  return {};
}

const stag_procedure* ProgramTable::find(std::uint32_t number) const {
  for (const stag_procedure& each : procedures_)
    if (each.number == number) return &each;
  return nullptr;
}

}  // namespace stag::c
