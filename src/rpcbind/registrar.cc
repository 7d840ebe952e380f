#include "rpcbind/registrar.h"

#include <algorithm>
#include <charconv>

#include "rpcbind/rpcbind.h"

namespace stag::rpcbind {
namespace {

using Done = Result<Ok, std::string>;

rpcb as_rpcb(const Registration& entry) {
  rpcb out;
  out.r_prog = entry.program;
  out.r_vers = entry.version;
  out.r_netid = entry.netid;
  out.r_addr = entry.address;
  return out;
}

bool holds(const std::vector<Registration>& list, const Registration& entry) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Registration& each) { return same(each, entry); });
}

// Whether rpcbind can keep only one of the two.
bool in_the_way(const Registration& there, const Registration& wanted) {
  return there.program == wanted.program && there.version == wanted.version &&
         there.netid == wanted.netid;
}

std::string in_words(const Registration& entry) {
  return "program " + std::to_string(entry.program) + " version " + std::to_string(entry.version) +
         " on " + entry.netid;
}

std::string taken(const Registration& there) {
  std::string text = in_words(there) + " is registered with rpcbind already, at " + there.address;
  if (!there.owner.empty()) text += " by " + there.owner;
  return text + "; stop the server that did it";
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool number_from(std::string_view word, std::uint32_t& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

std::string to_text(const std::vector<Registration>& registrations) {
  std::string text;
  for (const Registration& entry : registrations)
    text += std::to_string(entry.program) + " " + std::to_string(entry.version) + " " +
            entry.netid + " " + entry.address + "\n";
  return text;
}

std::vector<Registration> from_text(std::string_view text) {
  std::vector<Registration> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    Registration entry;
    const bool numbers =
        number_from(take_word(line), entry.program) && number_from(take_word(line), entry.version);
    entry.netid = take_word(line);
    entry.address = take_word(line);
    if (numbers && !entry.address.empty() && line.empty()) all.push_back(std::move(entry));
  }
  return all;
}

Task<Done> Registrar::set(std::vector<Registration> wanted, std::vector<Registration> previous) {
  Done done = co_await clear(wanted, previous);
  for (const Registration& entry : wanted) {
    if (!done) break;
    done = co_await set_one(entry);
  }
  if (!done) static_cast<void>(co_await unset());
  co_return done;
}

Task<Done> Registrar::clear(const std::vector<Registration>& wanted,
                            const std::vector<Registration>& previous) {
  const rpc::CallResult<std::vector<Registration>> all = co_await list(*channel_, options_);
  if (!all) co_return Failure{"cannot ask rpcbind: " + all.error().message()};
  for (const Registration& there : *all) {
    if (holds(previous, there) || holds(wanted, there)) {
      // If the entry belongs to another program after all, rpcbind refuses the registration below.
      static_cast<void>(co_await remove(there));
      continue;
    }
    for (const Registration& entry : wanted)
      if (in_the_way(there, entry)) co_return Failure{taken(there)};
  }
  co_return Ok{};
}

Task<Done> Registrar::set_one(Registration entry) {
  rpc::Client client(*channel_);
  const rpcb asked = as_rpcb(entry);
  const rpc::CallResult<bool> done = co_await client.call<RPCBPROC_SET>(asked, options_);
  if (!done)
    co_return Failure{"cannot register " + in_words(entry) +
                      " with rpcbind: " + done.error().message()};
  if (!*done) {
    trace(Reason::RpcbindRefused, channel_->where(), in_words(entry));
    co_return Failure{"rpcbind refused to register " + in_words(entry) +
                      "; it takes that from this machine only, and not over what another user "
                      "registered"};
  }
  registered_.push_back(std::move(entry));
  co_return Ok{};
}

Task<rpc::CallResult<bool>> Registrar::remove(const Registration& entry) {
  rpc::Client client(*channel_);
  const rpcb asked = as_rpcb(entry);
  co_return co_await client.call<RPCBPROC_UNSET>(asked, options_);
}

Task<bool> Registrar::unset() {
  while (!registered_.empty()) {
    const rpc::CallResult<bool> done = co_await remove(registered_.back());
    // Without an answer to one there will be none to the others.
    if (!done) co_return false;
    registered_.pop_back();
  }
  co_return true;
}

}  // namespace stag::rpcbind
