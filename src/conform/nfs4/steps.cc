#include "conform/nfs4/steps.h"

#include "xdr/encoder.h"

namespace stag::conform::nfs4 {
namespace {

// The bits of share_access that say so (RFC 8881 18.16).
std::uint32_t wanted_delegation(const Scene& scene, const Opening& opening) {
  if (scene.minor() == 0) return 0;
  return opening.delegated ? v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG
                           : v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
}

template <class Write>
v4::fattr4 one_attribute(std::uint32_t number, Write write) {
  xdr::Encoder encoder;
  write(encoder);
  v4::fattr4 made;
  made.attrmask = bits({number});
  made.attr_vals = Rope(std::move(encoder).finish().without({}).flatten());
  return made;
}

v4::createhow4 how_of(const Opening& opening) {
  v4::createhow4 how;
  how.mode = *opening.create;
  v4::verifier4 verifier{};
  verifier.fill(std::byte{opening.verifier});
  if (how.mode == v4::EXCLUSIVE4)
    how.createverf() = verifier;
  else if (how.mode == v4::EXCLUSIVE4_1)
    how.ch_createboth() = {verifier, opening.attributes};
  else
    how.createattrs() = opening.attributes;
  return how;
}

v4::open_claim4 claim_of(const Opening& opening) {
  v4::open_claim4 claim;
  claim.claim = opening.claim;
  if (opening.claim == v4::CLAIM_NULL) claim.file() = opening.name;
  if (opening.claim == v4::CLAIM_PREVIOUS) claim.delegate_type() = v4::OPEN_DELEGATE_NONE;
  if (opening.claim == v4::CLAIM_DELEGATE_PREV) claim.file_delegate_prev() = opening.name;
  if (opening.claim == v4::CLAIM_DELEGATE_CUR) claim.delegate_cur_info().file = opening.name;
  return claim;
}

void fill_open(Scene& scene, const Opening& opening, Op& to) {
  v4::OPEN4args& args = to.opopen();
  args.seqid = scene.seqid(opening.owner) + static_cast<std::uint32_t>(opening.seqid_off);
  args.share_access = opening.access | wanted_delegation(scene, opening);
  args.share_deny = opening.deny;
  args.owner = scene.owner(opening.owner);
  args.owner.clientid += opening.clientid_off;
  if (opening.create) {
    args.openhow.opentype = v4::OPEN4_CREATE;
    args.openhow.how() = how_of(opening);
  }
  args.claim = claim_of(opening);
  if (!opening.delegation.empty())
    args.claim.delegate_cur_info().delegate_stateid = scene.stateid(opening.delegation);
}

void take_delegation(Scene& scene, const std::string& file, const v4::open_delegation4& given) {
  if (given.delegation_type == v4::OPEN_DELEGATE_READ)
    scene.states["delegation of " + file] = given.read().stateid;
}

void fill_lock(Scene& scene, const Locking& locking, Op& to) {
  v4::LOCK4args& args = to.oplock();
  args.locktype = locking.type;
  args.reclaim = locking.reclaim;
  args.offset = locking.offset;
  args.length = locking.length;
  const auto off = static_cast<std::uint32_t>(locking.seqid_off);
  args.locker.new_lock_owner = !locking.open.empty();
  if (locking.open.empty()) {
    args.locker.lock_owner() = {scene.stateid(locking.held), scene.seqid(locking.owner) + off};
    return;
  }
  args.locker.open_owner() = {scene.seqid(scene.owner_of(locking.open)) + off,
                              scene.stateid(locking.open), scene.seqid(locking.owner),
                              scene.owner(locking.owner)};
  args.locker.open_owner().lock_owner.clientid += locking.clientid_off;
}

std::function<std::vector<std::string>(Scene&)> owner_taken_from(std::string state) {
  return [state](Scene& scene) { return std::vector<std::string>{scene.owner_of(state)}; };
}

}  // namespace

Step open(Opening opening) {
  const std::string as = opening.as.empty() ? opening.name : opening.as;
  return {v4::OP_OPEN, [opening](Scene& scene, Op& to) { fill_open(scene, opening, to); },
          [opening, as](Scene& scene, const OpResult& result) {
            const v4::OPEN4resok& ok = result.opopen().resok4();
            scene.states[as] = ok.stateid;
            scene.made_for(as, opening.owner);
            scene.opened.push_back(as);
            take_delegation(scene, as, ok.delegation);
            if ((ok.rflags & v4::OPEN4_RESULT_CONFIRM) != 0) scene.unconfirmed.insert(as);
          },
          [opening](Scene&) { return std::vector<std::string>{opening.owner}; }};
}

Step open_confirm(std::string state, std::int32_t seqid_off) {
  return {v4::OP_OPEN_CONFIRM,
          [state, seqid_off](Scene& scene, Op& to) {
            to.opopen_confirm() = {scene.stateid(state), scene.seqid(scene.owner_of(state)) +
                                                             static_cast<std::uint32_t>(seqid_off)};
          },
          [state](Scene& scene, const OpResult& result) {
            scene.states[state] = result.opopen_confirm().resok4().open_stateid;
            scene.unconfirmed.erase(state);
          },
          owner_taken_from(state)};
}

Step open_downgrade(std::string state, std::uint32_t access, std::uint32_t deny) {
  return {v4::OP_OPEN_DOWNGRADE,
          [=](Scene& scene, Op& to) {
            to.opopen_downgrade() = {scene.stateid(state), scene.seqid(scene.owner_of(state)),
                                     access, deny};
          },
          [state](Scene& scene, const OpResult& result) {
            scene.states[state] = result.opopen_downgrade().resok4().open_stateid;
          },
          owner_taken_from(state)};
}

Step close(std::string state, std::int32_t seqid_off) {
  return {v4::OP_CLOSE,
          [=](Scene& scene, Op& to) {
            to.opclose() = {
                scene.seqid(scene.owner_of(state)) + static_cast<std::uint32_t>(seqid_off),
                scene.stateid(state)};
          },
          [state](Scene& scene, const OpResult&) { std::erase(scene.opened, state); },
          owner_taken_from(state)};
}

Step lock(Locking locking) {
  return {v4::OP_LOCK, [locking](Scene& scene, Op& to) { fill_lock(scene, locking, to); },
          [locking](Scene& scene, const OpResult& result) {
            scene.states[locking.held] = result.oplock().resok4().lock_stateid;
            scene.made_for(locking.held, locking.owner);
            if (!locking.open.empty()) {
              scene.locked.push_back(locking.held);
              scene.handles["locked " + locking.held] = scene.handle(locking.open);
            }
          },
          [locking](Scene& scene) {
            if (locking.open.empty()) return std::vector<std::string>{locking.owner};
            return std::vector<std::string>{scene.owner_of(locking.open), locking.owner};
          }};
}

Step lockt(v4::nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length, std::string owner) {
  return {v4::OP_LOCKT, [=](Scene& scene, Op& to) {
            to.oplockt() = {type, offset, length, scene.owner(owner)};
          }};
}

Step locku(std::string held, std::uint64_t offset, std::uint64_t length) {
  return {v4::OP_LOCKU,
          [=](Scene& scene, Op& to) {
            to.oplocku() = {v4::WRITE_LT, scene.seqid(scene.owner_of(held)), scene.stateid(held),
                            offset, length};
          },
          [held](Scene& scene, const OpResult& result) {
            scene.states[held] = result.oplocku().lock_stateid();
          },
          owner_taken_from(held)};
}

Steps a_file(std::string name) {
  return {own(), open({.name = std::move(name), .create = v4::UNCHECKED4})};
}

Steps a_lock(v4::nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length) {
  return {at("f"),
          lock({.open = "f", .held = "l", .type = type, .offset = offset, .length = length})};
}

Step delegreturn(std::string state) {
  return with_state(v4::OP_DELEGRETURN, &Op::opdelegreturn, &v4::DELEGRETURN4args::deleg_stateid,
                    std::move(state));
}

Step delegpurge() {
  return {v4::OP_DELEGPURGE,
          [](Scene& scene, Op& to) { to.opdelegpurge() = {scene.client.clientid()}; }};
}

Step test_stateid(std::vector<std::string> states) {
  return {v4::OP_TEST_STATEID, [states](Scene& scene, Op& to) {
            for (const std::string& state : states)
              to.optest_stateid().ts_stateids.push_back(scene.stateid(state));
          }};
}

Step free_stateid(std::string state) {
  return with_state(v4::OP_FREE_STATEID, &Op::opfree_stateid, &v4::FREE_STATEID4args::fsa_stateid,
                    std::move(state));
}

Step read(std::string state, std::uint64_t offset, std::uint32_t count) {
  return with_state(v4::OP_READ, &Op::opread, &v4::READ4args::stateid, std::move(state),
                    {{}, offset, count});
}

Step write(std::string state, std::uint64_t offset, std::string text, v4::stable_how4 stable) {
  Step step = with_state(v4::OP_WRITE, &Op::opwrite, &v4::WRITE4args::stateid, std::move(state),
                         {{}, offset, stable, Rope::copy_of(bytes_of(text))});
  step.take = [](Scene& scene, const OpResult& result) {
    scene.numbers["written"] = result.opwrite().resok4().count;
  };
  return step;
}

Step commit(std::uint64_t offset, std::uint32_t count) {
  return plain(v4::OP_COMMIT, &Op::opcommit, {offset, count});
}

v4::bitmap4 bits(std::initializer_list<std::uint32_t> numbers) {
  v4::bitmap4 words;
  for (const std::uint32_t number : numbers) {
    if (words.size() <= number / 32) words.resize(number / 32 + 1);
    words[number / 32] |= 1u << number % 32;
  }
  return words;
}

v4::fattr4 mode_is(std::uint32_t mode) {
  return attribute(kMode, mode);
}
v4::fattr4 type_is(std::uint32_t type) {
  return attribute(kType, type);
}
v4::fattr4 size_is(std::uint64_t size) {
  return one_attribute(kSize, [size](xdr::Encoder& encoder) { encoder.u64(size); });
}
v4::fattr4 owner_is(const std::string& owner) {
  return one_attribute(kOwner, [&](xdr::Encoder& encoder) { encoder.opaque(0, bytes_of(owner)); });
}
v4::fattr4 attribute(std::uint32_t number, std::uint32_t word) {
  return one_attribute(number, [word](xdr::Encoder& encoder) { encoder.u32(word); });
}

v4::fattr4 truncated(v4::fattr4 whole) {
  whole.attr_vals = whole.attr_vals.slice(0, whole.attr_vals.size() - 4);
  return whole;
}

}  // namespace stag::conform::nfs4
