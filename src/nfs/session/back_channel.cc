#include "nfs/session/back_channel.h"

#include <algorithm>

namespace stag::nfs::session {

void BackChannel::reset(const v4::sessionid4& session, std::uint32_t slots) {
  slots_ = {};
  session_ = session;
  count_ = std::min(slots, kSlots);
}

BackChannel::Turn BackChannel::begin(const v4::CB_SEQUENCE4args& args,
                                     const Buffer& operations) const {
  if (count_ == 0 || args.csa_sessionid != session_) return {v4::NFS4ERR_BADSESSION};
  if (args.csa_slotid >= count_) return {v4::NFS4ERR_BADSLOT};
  if (args.csa_highest_slotid < args.csa_slotid || args.csa_highest_slotid >= count_)
    return {v4::NFS4ERR_BAD_HIGH_SLOT};
  const Slot& slot = slots_[args.csa_slotid];
  if (args.csa_sequenceid == slot.last && slot.kept)
    return std::ranges::equal(operations.bytes(), slot.operations.bytes())
               ? Turn{v4::NFS4_OK, &*slot.kept}
               : Turn{v4::NFS4ERR_SEQ_FALSE_RETRY};
  if (args.csa_sequenceid != slot.last + 1) return {v4::NFS4ERR_SEQ_MISORDERED};
  return {};
}

void BackChannel::end(const v4::CB_SEQUENCE4args& args, Buffer operations,
                      const v4::CB_COMPOUND4res& results) {
  // Of a session that has ended meanwhile.
  if (args.csa_sessionid != session_ || args.csa_slotid >= count_) return;
  Slot& slot = slots_[args.csa_slotid];
  slot.kept = results;
  slot.operations = std::move(operations);
  slot.last = args.csa_sequenceid;
}

v4::CB_SEQUENCE4resok BackChannel::answer_to(const v4::CB_SEQUENCE4args& args) const {
  const v4::slotid4 highest = count_ == 0 ? 0 : count_ - 1;
  return {args.csa_sessionid, args.csa_sequenceid, args.csa_slotid, highest, highest};
}

}  // namespace stag::nfs::session
