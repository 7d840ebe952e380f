// One COMPOUND while it runs (RFC 8881 2.3, 16.2): the current and the saved filehandle, the
// current stateid, the session's slot. Operations are functions of a Compound and their arguments.
//
// Thread: the loop of the Call. Lives as long as the Call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "nfs/export/admission.h"
#include "nfs/proto/nfs4.h"
#include "nfs/v4/attributes/attributes.h"
#include "nfs/v4/compound/pseudo_fs.h"
#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/compound/store_answer.h"

namespace stag::nfs::nfs4 {

// A filehandle of another server, from which COPY copies (RFC 7862 15.2.3): it is not looked up
// here. Refers to the arguments of the Call.
struct ForeignHandle {
  Bytes bytes;
};

// What a filehandle names: nothing yet, a folder of the pseudo file system, an object of an export,
// or something of another server.
using Object = std::variant<std::monostate, const PseudoFs::Node*, ExportObject, ForeignHandle>;

inline bool is_foreign(const Object& object) {
  return std::holds_alternative<ForeignHandle>(object);
}

// Of an export that does not take the caller's security flavor.
inline bool has_wrong_security(const Object& object) {
  const auto* of_export = std::get_if<ExportObject>(&object);
  return of_export != nullptr && of_export->wrong_security;
}

// A slot of a session that this COMPOUND occupies.
struct OccupiedSlot {
  state::SlotRef slot;
  state::LifePtr life;  // of the client
  bool cache_this = false;
  bool keeps_lease = true;         // Clients::keeps_no_lease() was not called
  std::uint32_t response_max = 0;  // bytes of the Reply, RPC header included
  std::uint32_t cached_max = 0;    // the same of one that is kept
};

class Compound {
 public:
  Compound(SharedState& shared, rpc::CallContext& call, std::uint32_t minor)
      : shared_(shared), admission_(shared.server, call), minor_(minor) {}
  Compound(const Compound&) = delete;

  SharedState& shared() const { return shared_; }
  const Admission& admission() const { return admission_; }
  // Of the exports that were present when it was asked for first.
  const PseudoFs& pseudo_fs() const;
  // Whether one may be mounted below another.
  bool has_nested_exports() const { return shared_.server.exports.nested(); }
  std::uint32_t minor() const { return minor_; }
  // The principal of the Call, for comparison with that of an earlier one (RFC 8881 2.10.8).
  std::string principal() const;
  // Whether that, of any Compound, is a name by Kerberos.
  static bool names_by_kerberos(std::string_view principal);
  // The same as a number that nobody can choose another principal's of.
  std::uint64_t principal_number() const {
    const rpc::Caller& caller = admission_.call().caller();
    const auto flavor = static_cast<std::uint32_t>(caller.flavor);
    if (caller.name) return number_of_name(flavor, *caller.name);
    return std::uint64_t{flavor} << 32 | caller.uid;
  }
  // Whether RPCSEC_GSS protects the whole Call, not only who sent it.
  bool has_integrity() const;
  TimePoint now() const { return admission_.call().loop().now(); }
  // Before the client is given anything (SharedState::record()).
  Task<v4::nfsstat4> record_client() {
    return shared_.record(*life(), admission_.call().loop(), &admission_.call().origin());
  }

  // 16.2.3.1.1. A new current filehandle has no current stateid.
  void set_current(Object object) {
    current_ = std::move(object);
    current_stateid_ = {};
  }
  const Object& current() const { return current_; }
  bool has_current() const { return current_.index() != 0; }
  bool has_saved() const { return saved_.index() != 0; }
  const Object& saved() const { return saved_; }
  void save() { saved_ = current_, saved_stateid_ = current_stateid_; }
  void restore() { current_ = saved_, current_stateid_ = saved_stateid_; }
  // Of operations that are refused elsewhere when the handle names no object of an export.
  const ExportObject& object() const { return std::get<ExportObject>(current_); }
  const ExportObject& saved_object() const { return std::get<ExportObject>(saved_); }

  // 16.2.3.1.2: the stateid of the last operation that gave one, for the special one that asks
  // for it.
  void set_current_stateid(const v4::stateid4& stateid) { current_stateid_ = stateid; }
  // The stateid meant by an argument; BAD_STATEID where the current one is meant and there is none.
  // RFC 8881 8.2.3: an open that was upgraded since is meant, too, so the current one has seqid 0.
  Result<v4::stateid4, v4::nfsstat4> meant(const v4::stateid4& argument) const;
  // The same for CLOSE and OPEN_DOWNGRADE, for which it has the seqid that it was given with.
  Result<v4::stateid4, v4::nfsstat4> meant_with_seqid(const v4::stateid4& argument) const;

  // Null outside of sessions.
  const OccupiedSlot* slot() const { return slot_ ? &*slot_ : nullptr; }
  std::optional<OccupiedSlot>& occupied() { return slot_; }
  // The client; of operations in a session, and of version 4.0 after identify().
  const state::LifePtr& life() const { return slot_ ? slot_->life : life_; }
  // Version 4.0: the client that the arguments name, or whose stateid they have; its lease is
  // renewed (RFC 7530 9.5). NFS4_OK, or why there is none. In a session: NFS4_OK.
  v4::nfsstat4 identify(v4::clientid4 clientid);
  v4::nfsstat4 identify(const v4::stateid4& stateid);

  // Bytes that the results of the operation that runs may take.
  std::uint64_t results_left() const { return results_left_; }
  void set_results_left(std::uint64_t bytes) { results_left_ = bytes; }

  // Bytes of a file that the operation that runs has read or written.
  void note_moved(std::uint64_t bytes) { moved_ = static_cast<std::uint32_t>(bytes); }
  std::uint32_t take_moved() { return std::exchange(moved_, 0); }

  // Whether the operation that runs, one that puts a filehandle, leaves it to the next one to
  // refuse the caller's security flavor (2.6.3.1.1).
  using Security = Admission::Security;
  Security security() const { return security_; }
  void set_security(Security security) { security_ = security; }
  // Whether the PUTFH that runs puts a filehandle of another server.
  bool puts_foreign() const { return puts_foreign_; }
  void set_puts_foreign(bool foreign) { puts_foreign_ = foreign; }

  // Makes what a filehandle of a client names the current one; NFS4_OK, or why not, and the current
  // one stays.
  v4::nfsstat4 put(Bytes filehandle);
  // Makes an object of an export that was removed, or does not admit the caller, the current one,
  // to give back what its client has of it, and nothing else. False: it is none.
  bool set_current_unreachable(Bytes filehandle);
  // An object of the pseudo file system, or the export that is mounted there.
  Result<Object, v4::nfsstat4> enter(const PseudoFs::Node& node,
                                     Security security = Security::Checked) const;
  // The same of one of many, whose export the COMPOUND does not keep.
  struct Entered {
    Object object;
    std::shared_ptr<const Export> kept{};  // its export
  };
  Result<Entered, v4::nfsstat4> look_into(const PseudoFs::Node& node,
                                          Security security = Security::Checked) const;
  FileHandles::Sealed handle_of(const Object& object) const;
  // What encode_attributes() needs of an object, which outlives the Eventual, for these attributes.
  using FoundAttributes = Result<AttributeSource, v4::nfsstat4>;
  Eventual<FoundAttributes> attributes_of(const Object& object, AttributeSet asked) const;
  // The same of an object whose store has answered.
  Task<FoundAttributes> told_attributes_of(const ExportObject& object, AttributeSet asked,
                                           StoreAnswer answer) const;
  // Whether clients are told names of owners, and not only their numbers.
  bool tells_names() const { return names() != nullptr; }
  // Afterwards the names of these are known, as far as anybody knows them in time.
  Task<void> learn_names(std::vector<IdName> ids) const;
  // The numbers of those whom a client has named; NFS4_OK, or BADOWNER, or DELAY.
  Task<v4::nfsstat4> resolve_names(WantedAttributes& wanted) const;
  // The same of an object of an export whose attributes are known.
  AttributeSource source_of(const ExportObject& object, const vfs::Attributes& attributes) const;
  AttributeSource source_of(const PseudoFs::Node& node) const;

 private:
  static std::uint64_t number_of_name(std::uint32_t flavor, const std::string& name);
  // What an object's own attributes tell, and what takes more than them.
  Eventual<FoundAttributes> own_attributes_of(const ExportObject& object,
                                              const vfs::Attributes& attributes,
                                              AttributeSet asked) const;
  Task<FoundAttributes> more_attributes_of(const ExportObject& object, AttributeSet asked,
                                           vfs::Operation<vfs::Attributes> attributes) const;
  void describe(AttributeSource& to, const ExportObject& object,
                const vfs::Attributes& attributes) const;
  Task<v4::nfsstat4> resolve_name(IdKind kind, std::string name, std::uint32_t& id) const;
  // The map that gives clients names; null: they get numbers.
  const IdMap* names() const {
    const IdMap* const map = shared_.options.id_map.get();
    return map != nullptr && map->gives_names() ? map : nullptr;
  }

  SharedState& shared_;
  Admission admission_;
  mutable std::shared_ptr<const PseudoFs> pseudo_fs_;  // null until it is asked for
  std::shared_ptr<const Export> unreachable_;          // of set_current_unreachable()
  std::uint32_t minor_;
  std::uint32_t moved_ = 0;
  std::uint64_t results_left_ = 0;
  Security security_ = Security::Checked;
  bool puts_foreign_ = false;
  Object current_;  // no {}, which would fill them with zeros first
  Object saved_;
  v4::stateid4 current_stateid_{};
  v4::stateid4 saved_stateid_{};
  std::optional<OccupiedSlot> slot_{};
  state::LifePtr life_{};  // without a session
};

// 18.x: the names that an operation takes; NFS4_OK, or with what it is refused.
v4::nfsstat4 check_name(std::string_view name);
// What a change of a directory was (3.3.5).
v4::change_info4 to_change_info4(const vfs::Change& change);

}  // namespace stag::nfs::nfs4
