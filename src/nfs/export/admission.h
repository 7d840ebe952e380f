// The admission of a Call: which object of which export its file handle names, and as whom the
// caller acts there. NFS of every version, NFSACL, MOUNT and NLM stand on it, and each has a status
// of its own for a Refusal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/eventual.h"
#include "base/task.h"
#include "nfs/export/exports_of_call.h"
#include "nfs/export/permission.h"
#include "nfs/export/server_context.h"
#include "rpc/program.h"

namespace stag::nfs {

// Why a Call does not reach the object it names.
enum class Refusal : std::uint8_t {
  BadHandle,      // this server did not make the file handle
  ExportGone,     // it did, for an export that it does not have any more
  NotAdmitted,    // the export is not open to the client's address, or wants a reserved port
  WrongSecurity,  // the export does not take the Call's security flavor
  // The export is open to names, and the client's is not known yet, or the groups of the user are
  // not; they are asked for.
  Undecided
};

// On which terms an export is open to a Call.
struct Admitted {
  const ExportOptions* options;  // those that hold for this client and its flavor
  // The export does not take the Call's security flavor (Security::Deferred).
  bool wrong_security;
  bool anonymous;  // as whom the caller acts there, whoever it is
};

// An object as one caller reaches it. Used within the Call that it was resolved for, whose
// Admission keeps the export.
struct ExportObject {
  // Not defaulted, so that none is filled with zeros first.
  ExportObject() {}
  ExportObject(const Export& of, const vfs::Handle& object, const Admitted& on,
               const rpc::Origin& origin, const rpc::Caller& from, WorkerTime* time)
      : export_(&of),
        options(on.options),
        handle(object),
        credentials(acting_as(*on.options, from)),
        loop(origin.loop),
        connection(&origin),
        worker_time(time),
        wrong_security(on.wrong_security) {
    if (on.anonymous) credentials = acting_as(*on.options, {});
  }

  const Export* export_ = nullptr;
  const ExportOptions* options = nullptr;
  vfs::Handle handle;
  vfs::Credentials credentials;  // after squashing
  Loop* loop = nullptr;
  const void* connection = nullptr;   // its share of the store's workers is taken
  WorkerTime* worker_time = nullptr;  // of the Call (rpc::CallContext)
  bool wrong_security = false;

  vfs::FileSystem& store() const { return export_->file_system(); }
  vfs::CallerContext caller() const { return {*loop, credentials, connection, worker_time}; }
  state::FileKey key() const { return {export_->store, handle, export_->id}; }
  bool read_only() const { return options->read_only; }
};

// Of a Call that may be answered late (nfs/export/deferred_calls.h).
class Deferral {
 public:
  // Its connection, or the server, came to an end while it waited: nothing was done.
  void abandon() { abandoned_ = true; }
  // Of procedures that have come to an end. A Call that is sent again runs as a new one where this
  // one was abandoned.
  template <class Results>
  Result<Results, rpc::CallRefusal> answer(Results results) const {
    if (!abandoned_) return results;
    rpc::CallRefusal refusal;
    refusal.drop = true;
    return Failure{refusal};
  }

 private:
  bool abandoned_ = false;
};

class Admission {
 public:
  // It keeps the exports that it is asked for, and all that it is given outlives it.
  // `deferral`: what is in the way of the Call is waited for, as long as it may be; null: a second.
  Admission(const ServerContext& server, const rpc::CallContext& call, Deferral* deferral = nullptr)
      : server_(server), call_(call), deferral_(deferral), exports_(server.exports) {}

  const rpc::CallContext& call() const { return call_; }
  const ServerContext& server() const { return server_; }
  // Those that the Call has met.
  ExportsOfCall& exports() const { return exports_; }
  // Exports::match(), of an export that the Call has met then.
  std::optional<Exports::Match> match(std::string_view path) const;

  // What becomes of a Call whose security flavor the export does not take.
  enum class Security : std::uint8_t {
    Checked,  // it is refused
    // It is refused unless the caller, or the export, has Kerberos, or the export takes AUTH_NONE,
    // as whose user the caller acts then: clients call MOUNT and NLM with AUTH_SYS whatever they
    // use for NFS, and find out what the export takes by mounting it.
    BesideNfs,
    // BesideNfs for the root of the export, which clients look at while they mount it (RFC
    // 2623 section 2.3.2), else Checked.
    Mounting,
    Deferred,  // an operation refuses it (RFC 8881 2.6.3.1.1), by ExportObject::wrong_security
  };
  // The object of a file handle that a client sent, in either of its forms.
  Result<ExportObject, Refusal> resolve(Bytes file_handle,
                                        Security security = Security::Checked) const;
  // The same for Calls that have no status for "later" which clients ask again after: it waits
  // until it is not Undecided any more, or nobody knows the client's name for too long.
  // `file_handle` outlives the Eventual.
  Eventual<Result<ExportObject, Refusal>> resolve_settled(
      Bytes file_handle, Security security = Security::Checked) const;
  // The same for Calls that clients ask again after, if only after seconds (version 3: Linux's
  // after five): it waits a second at most, and not at all where too many wait.
  Eventual<Result<ExportObject, Refusal>> resolve_soon(Bytes file_handle,
                                                       Security security = Security::Checked) const;
  // An object of `found`, which the caller or the Call keeps, on its terms for this Call. A refusal
  // is traced.
  Result<ExportObject, Refusal> admit(const Export& found, const vfs::Handle& object,
                                      Security security = Security::Checked) const;
  // The same for a caller that makes the ExportObject where it stays.
  Result<Admitted, Refusal> terms_of(const Export& found, Security security) const;

  // What an operation of versions 2 and 3 does is a change until this ends. Otherwise the operation
  // is refused: with Access, with the store's status where another holder is in the way, or with
  // Delay when that holder did not make way in time. What `intent` refers to outlives the Eventual.
  using Permitted = Result<state::FileChange, vfs::Status>;
  Eventual<Permitted> permit(const ExportObject& object, const Intent& intent) const;
  // Whether any holder may be in the way of an operation. Of READ nothing else is to be asked then.
  bool guarded() const { return server_.gate->guarded(); }
  // Why CREATE is refused, which may change the size of a file that has the name already; nullopt:
  // it is not. `how` and `name` outlive the Task.
  Task<std::optional<vfs::Status>> refused_create(const ExportObject& directory,
                                                  std::string_view name,
                                                  const vfs::CreateHow& how) const;
  // The same of what has this name, if anything has; it loses that name (REMOVE).
  Task<std::optional<vfs::Status>> refused_remove(const ExportObject& directory,
                                                  std::string_view name) const;
  // The same of RENAME, where a file that has the new name already loses it, too.
  Task<std::optional<vfs::Status>> refused_rename(const ExportObject& from,
                                                  std::string_view oldname, const ExportObject& to,
                                                  std::string_view newname) const;

  // The file handle of an object of `relative`'s export.
  FileHandles::Sealed handle_of(const ExportObject& relative, const vfs::Handle& object) const {
    return server_.handles.seal(relative.export_->id, object);
  }

 private:
  Task<Result<ExportObject, Refusal>> settle(Bytes file_handle, Security security,
                                             Duration at_most) const;
  Task<Result<ExportObject, Refusal>> settle_soon(Bytes file_handle, Security security) const;
  Task<std::optional<vfs::Status>> refused_name(const ExportObject& directory,
                                                std::string_view name, const Intent& intent) const;
  Task<Permitted> permit_in_time(const ExportObject& object, Intent intent) const;
  Task<Permitted> permit_late(const ExportObject& object, state::Touch touch) const;
  std::optional<Permitted> permit_now(const state::FileKey& file, state::Touch touch) const;
  Task<bool> stays_up_for(Duration time) const;

  const ServerContext& server_;
  const rpc::CallContext& call_;
  Deferral* const deferral_;
  mutable ExportsOfCall exports_;
};

// As Admission::admit(), of Calls that come from `origin`, which outlives the object, as
// `worker_time` does; null: nobody wants to know.
Result<ExportObject, Refusal> admit(const Export& found, const vfs::Handle& object,
                                    const rpc::Origin& origin, const rpc::Caller& caller,
                                    Admission::Security security, WorkerTime* worker_time);

// Why the store need not be called for a change of two objects (rename, link): CrossDevice or
// ReadOnly; nullopt when it must be.
std::optional<vfs::Status> refused_together(const ExportObject& one, const ExportObject& other);

// The attributes that go with an error; nullopt when the store does not give them.
Task<std::optional<vfs::Attributes>> attributes_now(const ExportObject& object);

}  // namespace stag::nfs
