#include "nfs/v4/interpreter.h"

#include <algorithm>

#include "base/pooled.h"
#include "nfs/ulb/nfs4.h"
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound_results.h"
#include "nfs/v4/foreign_handles.h"
#include "nfs/v4/held_up_claims.h"
#include "nfs/v4/machine_cleanup.h"
#include "nfs/v4/operation_list.h"
#include "nfs/v4/ops/delegations.h"
#include "nfs/v4/ops/open_target.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/results_max.h"
#include "nfs/v4/run_once.h"
#include "nfs/v4/session_slot.h"
#include "rpc/connection.h"

namespace stag::nfs::nfs4 {

namespace {

using rpc::CallContext;
using rpc::HandlerOutcome;

constexpr HandlerOutcome kEncoded{.status = {}, .drop = false, .encoded = true};

HandlerOutcome garbage() {
  return {oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS)};
}

// Why an operation may not stand where it stands (RFC 8881 2.10.2, 18.34.3, 18.46.3).
v4::nfsstat4 check_place(const Operation& row, std::size_t index, std::uint32_t sent,
                         bool in_session) {
  if (row.place == Place::First) return index == 0 ? v4::NFS4_OK : v4::NFS4ERR_SEQUENCE_POS;
  if (row.place == Place::OnlyOne) return sent == 1 ? v4::NFS4_OK : v4::NFS4ERR_NOT_ONLY_OP;
  if (in_session) return v4::NFS4_OK;
  if (row.place == Place::Alone) return sent == 1 ? v4::NFS4_OK : v4::NFS4ERR_NOT_ONLY_OP;
  return v4::NFS4ERR_OP_NOT_IN_SESSION;
}

// RFC 8881 18.37.3: the session that a COMPOUND is in may go with its last operation only.
bool ends_its_session(const OperationList::Entry& entry, const Compound& compound) {
  if (entry.number != v4::OP_DESTROY_SESSION || entry.arguments == nullptr) return false;
  const auto& args = *static_cast<const v4::DESTROY_SESSION4args*>(entry.arguments);
  return compound.slot() != nullptr && args.dsa_sessionid == compound.slot()->slot.sessionid;
}

[[gnu::always_inline]] inline v4::nfsstat4 check_handles(const Operation& row,
                                                         const Compound& compound) {
  if (row.needs == Needs::Nothing) return v4::NFS4_OK;
  if (!compound.has_current()) return v4::NFS4ERR_NOFILEHANDLE;
  if (row.needs == Needs::CurrentAndSaved && !compound.has_saved()) return v4::NFS4ERR_NOFILEHANDLE;
  if (meets_foreign(row, compound)) return v4::NFS4ERR_STALE;
  if (row.on_pseudo == v4::NFS4_OK) return v4::NFS4_OK;
  const bool pseudo = std::holds_alternative<const PseudoFs::Node*>(compound.current()) ||
                      (row.needs == Needs::CurrentAndSaved &&
                       std::holds_alternative<const PseudoFs::Node*>(compound.saved()));
  return pseudo ? row.on_pseudo : v4::NFS4_OK;
}

// RFC 8881 2.6.3.1.1: whether what follows an operation that puts a filehandle is what a caller
// with any flavor may ask, or refuses a wrong one itself.
Compound::Security security_of(const OperationList::Entries& entries, std::size_t index,
                               std::uint32_t minor) {
  while (++index < entries.size() && entries[index].number == v4::OP_SAVEFH) continue;
  if (index == entries.size()) return Compound::Security::Deferred;
  bool deferred = false;
  switch (entries[index].number) {
    case v4::OP_PUTFH:
    case v4::OP_PUTROOTFH:
    case v4::OP_PUTPUBFH:
    case v4::OP_RESTOREFH:
    case v4::OP_LOOKUP:
    case v4::OP_LOOKUPP:
    case v4::OP_SECINFO:
    case v4::OP_SECINFO_NO_NAME:
      deferred = true;
      break;
    case v4::OP_OPEN:
      // In version 4.0 this error would count for the owner's seqid (RFC 7530 9.1.7).
      deferred = minor != 0 && entries[index].arguments != nullptr &&
                 opens_by_name(*static_cast<const v4::OPEN4args*>(entries[index].arguments));
      break;
    default:
      break;
  }
  return deferred ? Compound::Security::Deferred : Compound::Security::Checked;
}

// Whether what failed leaves the object of a filehandle out of the client's reach; with DELAY until
// it is known who the client is.
bool is_unreachable(std::uint32_t number, v4::nfsstat4 status) {
  if (status == v4::NFS4ERR_STALE) return true;
  return number == v4::OP_PUTFH && (status == v4::NFS4ERR_ACCESS ||
                                    status == v4::NFS4ERR_WRONGSEC || status == v4::NFS4ERR_DELAY);
}

// What only these may do to a filehandle of an export that does not take the caller's flavor. With
// a saved one of such an export the current one is of another export (2.6.3.1.2).
[[gnu::always_inline]] inline v4::nfsstat4 check_security(const Operation& row,
                                                          const Compound& compound) {
  if (row.needs == Needs::Nothing) return v4::NFS4_OK;
  if (row.needs == Needs::CurrentAndSaved && has_wrong_security(compound.saved()))
    return v4::NFS4ERR_XDEV;
  if (!has_wrong_security(compound.current())) return v4::NFS4_OK;
  const bool knows = row.number == v4::OP_SAVEFH || row.number == v4::OP_LOOKUP ||
                     row.number == v4::OP_LOOKUPP || row.number == v4::OP_SECINFO ||
                     row.number == v4::OP_SECINFO_NO_NAME;
  return knows ? v4::NFS4_OK : v4::NFS4ERR_WRONGSEC;
}

// RFC 7530 has another word for what RFC 8881 15.1.2.9 calls a wrong type.
v4::nfsstat4 in_version(std::uint32_t minor, v4::nfsstat4 status) {
  return minor == 0 && status == v4::NFS4ERR_WRONG_TYPE ? v4::NFS4ERR_INVAL : status;
}

// Bytes of the shortest result that an operation may have: its refusal.
std::uint32_t least_result(const OperationList::Entry& entry) {
  constexpr std::uint32_t kNoAttributes = 4;  // SETATTR tells with every status which ones it set
  return kOperationHeader + (entry.number == v4::OP_SETATTR ? kNoAttributes : 0);
}

// Runs the operations of a COMPOUND and encodes their results.
class Interpreter {
 public:
  Interpreter(Compound& compound, CallContext& call, const OperationList& list,
              xdr::Encoder& encoder, OperationObserver* observer)
      : compound_(compound),
        call_(call),
        list_(list),
        cleanup_(compound, list),
        limits_(compound, call),
        results_(encoder, list.tag(), list.entries().size()),
        observer_(observer) {}

  // `sequence`: the results of SEQUENCE, the first operation, which has run; null: none has. The
  // Interpreter lives until the operations have ended.
  Eventual<Ok> run(const v4::SEQUENCE4res* sequence) {
    if (compound_.minor() == 0) identify_who_gives_back();
    if (sequence != nullptr) {
      encode_sequence(results_.begin(v4::OP_SEQUENCE), *sequence);
      next_ = 1;
      tell(v4::OP_SEQUENCE, v4::NFS4_OK, false);
    }
    return go_on();
  }
  // Of a COMPOUND that waits.
  const OperationList::Entry& waiting() const { return list_.entries()[next_]; }

 private:
  // In version 4.0 a stateid alone says who asks, and Linux's client asks for attributes in front
  // of DELEGRETURN: it would be called back about what it is giving back.
  void identify_who_gives_back() {
    for (const OperationList::Entry& entry : list_.entries())
      if (entry.number == v4::OP_DELEGRETURN && entry.arguments != nullptr)
        static_cast<void>(compound_.identify(
            static_cast<const v4::DELEGRETURN4args*>(entry.arguments)->deleg_stateid));
  }

  // Most operations end at once: there is a coroutine from the first on that does not.
  Eventual<Ok> go_on() {
    const auto& entries = list_.entries();
    while (next_ < entries.size() && status_ == v4::NFS4_OK) {
      const OperationList::Entry& entry = entries[next_];
      Eventual<v4::nfsstat4> ended = begin(entry);
      if (!ended.ready()) return go_on_after(std::move(ended));
      end(entry, ended.value());
    }
    results_.finish(status_);
    return Ok{};
  }
  Task<Ok> go_on_after(Eventual<v4::nfsstat4> ended) {
    const v4::nfsstat4 status = co_await std::move(ended);
    end(list_.entries()[next_], status);
    co_return co_await go_on();
  }

  // In line, as what follows is: each is called for every operation.
  [[gnu::always_inline]] Eventual<v4::nfsstat4> begin(const OperationList::Entry& entry) {
    const v4::nfsstat4 refused = before(entry, next_);
    xdr::Encoder& encoder = results_.begin(entry.number);
    runs_ = refused == v4::NFS4_OK;
    if (runs_ && observer_ != nullptr) began_ = std::max(began_, call_.loop().now());
    return runs_ ? entry.row->run(compound_, entry.arguments, encoder) : refused;
  }
  [[gnu::always_inline]] void end(const OperationList::Entry& entry, v4::nfsstat4 status) {
    if (!runs_) {
      note_too_long(status);
      results_.replace(entry.number, entry.row, status);
    } else {
      if (status != v4::NFS4_OK) results_.pass_over(*entry.row);
      status = after(entry, status);
    }
    tell(entry.number, status, runs_ && entry.row->needs != Needs::Nothing);
    status_ = status;
    ++next_;
    if (status != v4::NFS4_OK && runs_ && is_unreachable(entry.number, status)) [[unlikely]]
      give_back_unreachable(entry);
    if (status == v4::NFS4ERR_DELAY && entry.number == v4::OP_PUTFH) [[unlikely]]
      note_held_up(compound_, list_.entries());
  }

  // Linux's client asks for attributes before it gives something back, and takes it for given back
  // when the file is gone; of an export that was removed, or is open to it no longer, everybody
  // does. What it had, which nobody else can use, would stay until it ends. Decision 0071.
  [[gnu::noinline]] void give_back_unreachable(const OperationList::Entry& failed) {
    const auto& entries = list_.entries();
    std::size_t at = next_;
    if (failed.number == v4::OP_PUTFH) {
      const auto& args = *static_cast<const PutfhArguments*>(failed.arguments);
      if (!compound_.set_current_unreachable(args.object)) return;
      if (status_ == v4::NFS4ERR_DELAY) put_off_recalls(compound_, *compound_.object().export_);
      if (at < entries.size() && entries[at].number == v4::OP_GETATTR) ++at;
    }
    const bool gone =
        at < entries.size() && std::holds_alternative<ExportObject>(compound_.current());
    // The client comes again with what is to come later; only what is recalled cannot wait.
    const bool waits =
        status_ == v4::NFS4ERR_DELAY && gone && entries[at].number != v4::OP_DELEGRETURN;
    if (gone && !waits && may_run(entries[at], at)) give_back(entries[at]);
  }
  // Apart, so that before() is in line in the loop alone.
  [[gnu::noinline]] bool may_run(const OperationList::Entry& entry, std::size_t index) {
    return before(entry, index) == v4::NFS4_OK;
  }
  // Version 4.0: not in the turn of an owner, who does not count what was not answered.
  void give_back(const OperationList::Entry& entry) {
    const auto known = [this](const v4::stateid4& stateid) {
      return compound_.identify(stateid) == v4::NFS4_OK && may_give_back();
    };
    if (entry.number == v4::OP_CLOSE) {
      auto& args = *static_cast<v4::CLOSE4args*>(entry.arguments);
      if (known(args.open_stateid)) close(compound_, args);
    } else if (entry.number == v4::OP_LOCKU) {
      auto& args = *static_cast<v4::LOCKU4args*>(entry.arguments);
      if (known(args.lock_stateid)) locku(compound_, args);
    } else if (entry.number == v4::OP_DELEGRETURN) {
      auto& args = *static_cast<v4::DELEGRETURN4args*>(entry.arguments);
      if (known(args.deleg_stateid)) delegreturn(compound_, args);
    }
  }
  // What Kerberos protects stays where no export says any more who may touch it.
  bool may_give_back() const {
    return status_ == v4::NFS4ERR_STALE || proves_as_much_as_its_client(compound_);
  }

  void tell(std::uint32_t number, v4::nfsstat4 status, bool on_filehandle) {
    if (observer_ == nullptr) return;
    const auto* object = std::get_if<ExportObject>(&compound_.current());
    began_ = observer_->on_operation({.call = call_,
                                      .number = number,
                                      .status = static_cast<std::uint32_t>(status),
                                      .at = object == nullptr ? nullptr : object->export_,
                                      .on_filehandle = on_filehandle,
                                      .moved = compound_.take_moved(),
                                      .began = began_});
  }

  [[gnu::always_inline]] v4::nfsstat4 before(const OperationList::Entry& entry, std::size_t index) {
    if (entry.row != nullptr) {
      // Version 4.0 has no sessions.
      const bool in_session = compound_.minor() == 0 || compound_.slot() != nullptr;
      const v4::nfsstat4 misplaced = check_place(*entry.row, index, list_.sent(), in_session);
      if (misplaced != v4::NFS4_OK) return misplaced;
    }
    if (entry.refusal != v4::NFS4_OK) return entry.refusal;
    if (index + 1 < list_.sent() && ends_its_session(entry, compound_))
      return v4::NFS4ERR_NOT_ONLY_OP;
    const v4::nfsstat4 status = in_version(compound_.minor(), check_handles(*entry.row, compound_));
    if (status != v4::NFS4_OK) return status;
    const v4::nfsstat4 insecure =
        cleanup_.allows(entry.number) ? v4::NFS4_OK : check_security(*entry.row, compound_);
    if (insecure != v4::NFS4_OK) return insecure;
    if (entry.puts_filehandle()) {
      compound_.set_puts_foreign(names_source(list_.entries(), index));
      compound_.set_security(cleanup_.any()
                                 ? Compound::Security::Deferred
                                 : security_of(list_.entries(), index, compound_.minor()));
    }
    least_after_ = least_after(index);
    const std::int64_t besides = kOperationHeader + std::int64_t{least_after_};
    const std::int64_t left = limits_.left(results_) - besides;
    compound_.set_results_left(left > 0 ? static_cast<std::uint64_t>(left) : 0);
    const std::uint32_t modifies_with = entry.row->modifies_with;
    return modifies_with == 0 ? v4::NFS4_OK : limits_.refusal(results_, besides + modifies_with);
  }
  // Bytes that the operation behind this one needs for its refusal.
  std::uint32_t least_after(std::size_t index) const {
    const auto& entries = list_.entries();
    return index + 1 < entries.size() ? least_result(entries[index + 1]) : 0;
  }

  // RFC 8881 2.10.6.4: a result that is too long for the session is taken back, as is one that is
  // too long for the chunks of the Call, for which a transport would answer with an error of its
  // own. That of a modifying operation was known to fit.
  v4::nfsstat4 after(const OperationList::Entry& entry, v4::nfsstat4 status) {
    const v4::nfsstat4 known = in_version(compound_.minor(), status);
    if (known == status && entry.row->modifies_with != 0) return status;
    const std::int64_t more = known == v4::NFS4_OK ? least_after_ : 0;
    const v4::nfsstat4 too_big = known == status ? limits_.refusal_of_known(results_, more) : known;
    if (too_big == v4::NFS4_OK || too_big == status) return status;
    note_too_long(too_big);
    results_.replace(entry.number, entry.row, too_big);
    return too_big;
  }

  void note_too_long(v4::nfsstat4 refusal) const {
    if (refusal == v4::NFS4ERR_REP_TOO_BIG_TO_CACHE)
      note_limit(compound_, Reason::Nfs4ReplyTooLongToKeep, compound_.life()->clientid, {});
  }

  Compound& compound_;
  CallContext& call_;
  const OperationList& list_;
  const MachineCleanup cleanup_;
  const ResultLimits limits_;
  Results results_;
  std::size_t next_ = 0;
  bool runs_ = false;              // the operation that is next, unless it was refused
  std::uint32_t least_after_ = 0;  // of the operation that runs
  v4::nfsstat4 status_ = v4::NFS4_OK;
  OperationObserver* const observer_;
  TimePoint began_{};  // the operation that runs
};

// What the client may not send at all, before any operation is looked at.
v4::nfsstat4 refusal_of(const OperationList& list, std::uint32_t most) {
  if (list.minor() > kLastMinor) return v4::NFS4ERR_MINOR_VERS_MISMATCH;
  // RFC 7530 13.1.3.4: version 4.0 has no limit to negotiate.
  const bool too_long = list.minor() == 0 && list.sent() > most;
  return too_long ? v4::NFS4ERR_RESOURCE : v4::NFS4_OK;
}

// RFC 8267 6.4.2: a Read chunk that is no argument's leaves nothing to be run. The server cannot
// know whose chunks stand behind an operation that is not decoded.
bool chunks_fit(const OperationList& list, xdr::Decoder& arguments,
                const rpc::ReducedItems& items) {
  const auto& entries = list.entries();
  const v4::nfsstat4 last = entries.empty() ? v4::NFS4_OK : entries.back().refusal;
  if (items.failed() || (last == v4::NFS4ERR_BADXDR && !items.all_taken())) return false;
  const bool whole = entries.size() == list.sent() && last == v4::NFS4_OK;
  return !whole || rpc::detail::arguments_complete(arguments, items);
}

// A COMPOUND of a client, and all that its operations refer to until the last one has ended. Where
// one of them has to wait, it goes into the coroutine that waits; most have ended before there is
// any.
class RunningCompound : public Pooled {
 public:
  RunningCompound(SharedState& shared, CallContext& call, xdr::Encoder& encoder,
                  OperationObserver* observer)
      : shared_(shared), call_(call), encoder_(encoder), observer_(observer) {}

  // When that has ended, end() is due.
  Eventual<Ok> run(xdr::Decoder& arguments, const rpc::ReducedItems& items) {
    const std::uint32_t most = shared_.options.clients.fore.max_operations;
    if (!list_.decode(arguments, most) || !chunks_fit(list_, arguments, items)) {
      outcome_ = garbage();
      return Ok{};
    }
    const v4::nfsstat4 refusal = refusal_of(list_, most);
    Compound& compound = compound_.emplace(shared_, call_, list_.minor());
    if (refusal != v4::NFS4_OK) {
      if (refusal == v4::NFS4ERR_RESOURCE)
        note_limit(compound, Reason::Nfs4OperationsTooMany, 0, {});
      Results(encoder_, list_.tag()).finish(refusal);
      return Ok{};
    }
    if (!starts_session()) {
      if (must_run_once(list_)) return run_once();
      return interpret(encoder_, nullptr);
    }
    const auto begun = slot_.emplace(compound).begin(list_);
    if (!begun) return run_after_the_first();
    return run_behind(*begun);
  }
  // When it waits. The watch ends before it does.
  void watch(rpc::Connection::Watch& watch) {
    if (!interpreter_ || !slot_ || call_.connection() == nullptr) return;
    const auto lost = [this] { slot_->lost_connection(interpreter_->waiting()); };
    if (!watch.start(*call_.connection(), lost)) lost();
  }
  HandlerOutcome end() {
    if (kept_) encoder_.append(slot_->finish(std::move(*kept_).finish()));
    return outcome_;
  }

 private:
  bool starts_session() const {
    return !list_.entries().empty() && list_.entries()[0].row != nullptr &&
           list_.entries()[0].row->place == Place::First &&
           list_.entries()[0].refusal == v4::NFS4_OK;
  }
  Eventual<Ok> interpret(xdr::Encoder& to, const v4::SEQUENCE4res* sequence) {
    return interpreter_.emplace(*compound_, call_, list_, to, observer_).run(sequence);
  }
  // Behind SEQUENCE.
  [[gnu::always_inline]] Eventual<Ok> run_behind(const SessionSlot::Begun& begun) {
    if (begun.replay) {
      encoder_.append(*begun.replay);
    } else if (begun.uncached || begun.result.sr_status != v4::NFS4_OK) {
      answer_sequence(begun);
    } else {
      if (slot_->keeps_results()) kept_.emplace(ulb::nfs4_result_items());
      return interpret(kept_ ? *kept_ : encoder_, &begun.result);
    }
    return Ok{};
  }
  Task<Ok> run_after_the_first() {
    const SessionSlot::Begun begun = co_await slot_->begin_after_the_first(list_);
    co_return co_await run_behind(begun);
  }
  // Version 4.0: a retransmission gets the results of the first run. It is dropped where a later
  // one came, for its client has given up the connection of this one (RFC 7530 3.1.1).
  Task<Ok> run_once() {
    RunOnce once(shared_.replays, call_);
    const rpc::ReplayCache::Admitted admitted = co_await once.admit();
    if (admitted.admission == rpc::ReplayCache::Admission::Drop) {
      outcome_ = HandlerOutcome{.status = {}, .drop = true};
    } else if (!admitted.results) {
      xdr::Encoder kept(ulb::nfs4_result_items());
      co_await interpret(kept, nullptr);
      encoder_.append(once.finish(std::move(kept).finish()));
    } else if (admitted.results->status.success()) {
      encoder_.append(admitted.results->results);
    } else {
      outcome_ = HandlerOutcome{admitted.results->status};
    }
    co_return Ok{};
  }
  // Where nothing is run behind SEQUENCE.
  void answer_sequence(const SessionSlot::Begun& begun) {
    Results results(encoder_, list_.tag());
    encode(results.begin(v4::OP_SEQUENCE), begun.result);
    v4::nfsstat4 status = begun.result.sr_status;
    if (begun.uncached && list_.entries().size() > 1) {
      const OperationList::Entry& next = list_.entries()[1];
      status = v4::NFS4ERR_RETRY_UNCACHED_REP;
      results.begin(next.number);
      results.replace(next.number, next.row, status);
    }
    results.finish(status);
  }

  SharedState& shared_;
  CallContext& call_;
  xdr::Encoder& encoder_;
  OperationObserver* const observer_;
  OperationList list_;
  std::optional<Compound> compound_;
  std::optional<SessionSlot> slot_;   // of a COMPOUND in a session
  std::optional<xdr::Encoder> kept_;  // the results, where the slot keeps them
  std::optional<Interpreter> interpreter_;
  HandlerOutcome outcome_ = kEncoded;
};

class CompoundHandler final : public rpc::Handler {
 public:
  CompoundHandler(SharedState& shared, OperationObserver* observer)
      : shared_(shared), observer_(observer) {}

  Eventual<HandlerOutcome> run(CallContext& call, xdr::Decoder& arguments,
                               const rpc::ReducedItems& items, xdr::Encoder& encoder) override {
    auto compound = std::make_unique<RunningCompound>(shared_, call, encoder, observer_);
    Eventual<Ok> ran = compound->run(arguments, items);
    if (ran.ready()) return compound->end();
    return end_later(std::move(compound), std::move(ran));
  }

  std::optional<std::uint64_t> results_max(xdr::Decoder& arguments,
                                           const rpc::ProcedureBinding*) const override {
    const state::ChannelAttributes& most = shared_.options.clients.fore;
    return std::min<std::uint64_t>(nfs4::results_max(arguments, most.max_operations),
                                   most.max_response_size);
  }

 private:
  static Task<HandlerOutcome> end_later(std::unique_ptr<RunningCompound> compound,
                                        Eventual<Ok> ran) {
    rpc::Connection::Watch watch;
    compound->watch(watch);
    co_await std::move(ran);
    co_return compound->end();
  }

  SharedState& shared_;
  OperationObserver* const observer_;
};

}  // namespace

std::unique_ptr<rpc::Handler> compound_handler(SharedState& shared, OperationObserver* observer) {
  return std::make_unique<CompoundHandler>(shared, observer);
}

}  // namespace stag::nfs::nfs4
