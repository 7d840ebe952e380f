#include "nfs/v4/compound/limit_notes.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace stag::nfs::nfs4 {

namespace {

// As the events of the log have it: what a capture of the network shows, too.
std::string xid_of(const Compound& compound) {
  std::array<char, sizeof "xid 0x12345678"> text;
  std::snprintf(text.data(), text.size(), "xid 0x%08x",
                static_cast<unsigned>(compound.admission().call().header().xid));
  return text.data();
}

std::string detail_of(const Compound& compound, state::ClientId client, std::string_view what) {
  std::string detail = client == 0 ? std::string() : "client " + std::to_string(client);
  const auto add = [&](std::string_view between, std::string_view text) {
    if (!detail.empty()) detail += between;
    detail += text;
  };
  if (const auto* object = std::get_if<ExportObject>(&compound.current()))
    add(", ", "export " + object->export_->path());
  add(", ", xid_of(compound));
  if (!what.empty()) add(": ", what);
  return detail;
}

// What a session gets while there is memory for kept replies; empty: it got that, and all slots
// that its client wants.
std::string reduction_of(const state::ChannelAttributes& asked,
                         const state::ChannelAttributes& granted, std::uint32_t kept_most) {
  std::string text;
  if (granted.max_requests < asked.max_requests)
    text = std::to_string(granted.max_requests) + " of " + std::to_string(asked.max_requests) +
           " slots";
  const std::uint32_t kept = std::min(asked.max_response_size_cached, kept_most);
  if (granted.max_response_size_cached < kept)
    text += (text.empty() ? "" : ", ") + std::to_string(granted.max_response_size_cached) + " of " +
            std::to_string(kept) + " bytes of a reply";
  return text;
}

void note_refused_session(const Compound& compound, state::ClientId client,
                          const state::CreateSessionResult& made) {
  if (made.limit == state::Limit::None) return;
  const Reason reason = made.caches_full                      ? Reason::Nfs4CachesFull
                        : made.status == state::Status::Delay ? Reason::Nfs4ClientsTooMany
                                                              : Reason::Nfs4SessionsTooMany;
  note_limit(compound, reason, client, name_of(made.limit));
}

}  // namespace

std::string_view name_of(state::Limit limit) {
  switch (limit) {
    case state::Limit::Client:
      return "the limit of a client";
    case state::Limit::Address:
      return "the limit of its address";
    case state::Limit::All:
      return "the limit of all clients together";
    case state::Limit::File:
      return "the limit of a file that programs of the server may lock";
    case state::Limit::None:
      break;
  }
  return {};
}

void note_limit(const Compound& compound, Reason reason, state::ClientId client,
                std::string_view what) noexcept {
  const Address& peer = compound.admission().call().origin().peer;
  try {
    trace(reason, to_string(peer), detail_of(compound, client, what));
  } catch (const std::bad_alloc&) {
    // What is refused must not fail because its log line does.
    trace(reason, peer.host);
  }
}

void note_limit(const Compound& compound, Reason reason, state::Limit limit) noexcept {
  if (limit == state::Limit::None) return;
  const state::LifePtr& life = compound.life();
  note_limit(compound, reason, life == nullptr ? 0 : life->clientid, name_of(limit));
}

void note_session(const Compound& compound, const state::CreateSessionArgs& asked,
                  const state::CreateSessionResult& made) noexcept {
  if (made.status != state::Status::Ok) return note_refused_session(compound, asked.clientid, made);
  if (made.replay) return;
  try {
    const std::string reduction = reduction_of(
        asked.fore, made.fore, compound.shared().options.clients.fore.max_response_size_cached);
    if (!reduction.empty())
      note_limit(compound, Reason::Nfs4SlotsReduced, asked.clientid, reduction);
  } catch (const std::bad_alloc&) {
    note_limit(compound, Reason::Nfs4SlotsReduced, asked.clientid, {});
  }
}

void note_evicted(const Compound& compound, std::string_view address) noexcept {
  if (address.empty()) return;
  const Address& peer = compound.admission().call().origin().peer;
  try {
    trace(Reason::Nfs4UnconfirmedEvicted, address, to_string(peer) + ", " + xid_of(compound));
  } catch (const std::bad_alloc&) {
    trace(Reason::Nfs4UnconfirmedEvicted, address, peer.host);
  }
}

}  // namespace stag::nfs::nfs4
