// What clients and servers of the C API share: structs of other versions, errors as codes, and
// programs as the library's own tables.
//
// Thread: no state. Errors: functions that allocate throw std::bad_alloc, which guard() catches at
// the border to C.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "base/loop_thread.h"
#include "c/stag.h"
#include "rpc/binding.h"
#include "rpc/call_error.h"

namespace stag::c {

// The items of the programs' messages (xdr/item.h).
inline constexpr xdr::ItemId kArgumentsBulk = 1;
inline constexpr xdr::ItemId kResultsBulk = 2;

// What the `size` of a struct is at least: up to the last member that its first version had. Below
// that it was not set.
template <class T>
inline constexpr std::size_t kLeastSize = sizeof(std::size_t);
template <>
inline constexpr std::size_t kLeastSize<stag_procedure> = offsetof(stag_procedure, results_head) +
                                                          sizeof(stag_procedure::results_head);
template <>
inline constexpr std::size_t kLeastSize<stag_program> = offsetof(stag_program, procedure_count) +
                                                        sizeof(stag_program::procedure_count);
template <>
inline constexpr std::size_t kLeastSize<stag_connect_options> = offsetof(stag_connect_options,
                                                                         gid) +
                                                                sizeof(stag_connect_options::gid);
template <>
inline constexpr std::size_t kLeastSize<stag_call> = offsetof(stag_call, results_bulk_length) +
                                                     sizeof(stag_call::results_bulk_length);
template <>
inline constexpr std::size_t kLeastSize<stag_serve_options> = offsetof(stag_serve_options,
                                                                       threads) +
                                                              sizeof(stag_serve_options::threads);
template <>
inline constexpr std::size_t kLeastSize<stag_caller> = offsetof(stag_caller, address) +
                                                       sizeof(stag_caller::address);
template <>
inline constexpr std::size_t kLeastSize<stag_results> = offsetof(stag_results, release_context) +
                                                        sizeof(stag_results::release_context);

// Whether the caller has set the size of a struct that is there; a null one needs none.
template <class T>
bool has_size(const T* from) {
  return from == nullptr || from->size >= kLeastSize<T>;
}

// `from` as this library knows the struct: members beyond from->size are zero. A null `from` is all
// zeros. `size` is that of this library afterwards.
template <class T>
T known(const T* from) {
  T to{};
  if (from != nullptr) std::memcpy(&to, from, std::min(from->size, sizeof to));
  to.size = sizeof to;
  return to;
}

// The reverse: fills as much of `to` as its caller knows. Null is ignored.
template <class T>
void give(const T& from, T* to) {
  if (to == nullptr || to->size <= sizeof to->size) return;
  const std::size_t size = std::min(to->size, sizeof from);
  std::memcpy(reinterpret_cast<char*>(to) + sizeof to->size,
              reinterpret_cast<const char*>(&from) + sizeof to->size, size - sizeof to->size);
}

// What a pointer and a length say; nothing where the pointer is null.
inline Bytes bytes_at(const void* data, std::size_t length) {
  return {static_cast<const std::byte*>(data), data == nullptr ? 0 : length};
}
inline MutableBytes memory_at(void* data, std::size_t length) {
  return {static_cast<std::byte*>(data), data == nullptr ? 0 : length};
}

// Both cut the texts to what fits, and end them with a NUL.
stag_error error_of(stag_status status, std::string_view text, std::string_view reason = {});
stag_error error_of(const rpc::CallError& error);
// The error of a `reason` other than None.
stag_error error_of(Reason reason, std::string_view where);
inline stag_error no_error() {
  return error_of(STAG_OK, {});
}

// Of functions that block: STAG_WRONG_THREAD on a thread that runs a loop, whosever it is. A
// handler that waits for a client of its own server would wait for itself.
inline std::optional<stag_error> wrong_thread() {
  if (!thread_runs_a_loop) return std::nullopt;
  return error_of(STAG_WRONG_THREAD, "this function blocks, and this is a thread of the library");
}

// Gives `result` to the caller and returns its code.
inline int report(const stag_error& result, stag_error* to) {
  give(result, to);
  return result.status;
}

// Runs `body`, which returns a stag_error, and reports what came of it. No exception passes.
template <class Body>
int guard(stag_error* to, Body body) noexcept {
  try {
    return report(body(), to);
  } catch (const std::bad_alloc&) {
    return report(error_of(STAG_NO_MEMORY, "there is no memory"), to);
  } catch (...) {
    return report(error_of(STAG_FAILED, "an unexpected exception"), to);
  }
}

// A stag_program, checked and copied. Not movable: the binding refers to it.
class ProgramTable {
 public:
  // Empty `error()`: the program can be used; else it says what is wrong with it.
  explicit ProgramTable(const stag_program* program);
  ProgramTable(const ProgramTable&) = delete;
  ProgramTable& operator=(const ProgramTable&) = delete;

  std::string_view error() const { return error_; }
  std::uint32_t program() const { return program_; }
  std::uint32_t version() const { return version_; }
  rpc::Binding binding() const { return rpc::Binding(bindings_); }
  const std::vector<stag_procedure>& procedures() const { return procedures_; }
  // Null when the program has no such procedure.
  const stag_procedure* find(std::uint32_t number) const;

 private:
  std::string_view add(const stag_procedure& procedure);

  std::uint32_t program_ = 0;
  std::uint32_t version_ = 0;
  std::vector<stag_procedure> procedures_;
  std::vector<rpc::ProcedureBinding> bindings_;
  std::string_view error_;
};

}  // namespace stag::c
