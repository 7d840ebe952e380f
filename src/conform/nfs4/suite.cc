#include "conform/nfs4/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conform/nfs4/cases.h"
#include "conform/nfs4/elapsed.h"
#include "conform/nfs4/errors.h"
#include "conform/nfs4/fixtures.h"

namespace stag::conform::nfs4 {
namespace {

// Cases in a row before which the server was silent, behind which no more are asked.
constexpr int kSilentCases = 3;

Scripts all_cases(std::uint32_t minor) {
  Scripts all;
  for (const auto family : {compound_cases,   filehandle_cases,
                            name_cases,       pseudo_fs_cases,
                            attribute_cases,  data_cases,
                            stateid_cases,    open_cases,
                            delegation_cases, delegation_wish_cases,
                            recall_cases,     revoked_cases,
                            lease_cases,      lock_cases,
                            session_cases,    client_cases,
                            principal_cases,  protection_cases,
                            reply_size_cases, layout_cases,
                            v40_cases,        v42_cases,
                            offload_cases,    copy_notify_cases,
                            xattr_cases})
    append(all, family());
  append(all, shared_error_cases(minor));
  std::erase_if(all, [&](const Script& script) { return (script.minors >> minor & 1) == 0; });
  std::ranges::stable_sort(all, {}, [](const Script& script) {
    return std::pair(script.last, static_cast<std::uint32_t>(script.subject()));
  });
  return all;
}

Title title_of(const Script& script, std::uint32_t minor) {
  Title title;
  title.suite = fmt::format("nfs4.{}", minor);
  title.group = script.group.empty() ? name_of(script.subject()) : script.group;
  title.name = name_of(script.expect.front());
  if (!script.note.empty()) title.name += ", " + script.note;
  title.section =
      script.section.empty() ? section_of(script.subject(), minor) : "RFC " + script.section;
  title.requirements = script.requirements;
  return title;
}

// Not what this minor version does not have.
bool succeeds(const OperationErrors& row) {
  return row.operation != v4::OP_ILLEGAL &&
         row.errors != std::vector<v4::nfsstat4>{v4::NFS4ERR_NOTSUPP};
}

class Nfs4Suite final : public Suite {
 public:
  Nfs4Suite(rpc::Channel* channel, SuiteOptions options, CancelToken cancel)
      : options_(std::move(options)),
        channel_(channel),
        cancel_(cancel),
        scripts_(all_cases(options_.minor)) {
    for (const Script& script : scripts_)
      cases_.push_back({title_of(script, options_.minor), {}, script.dangerous, script.slow});
    list_the_rest();
  }
  const std::vector<Case>& cases() const override { return cases_; }

  Task<std::string> begin() override {
    client_.emplace(*channel_, client_options(options_, cancel_));
    std::string trouble = co_await client_->establish();
    if (trouble.empty()) trouble = co_await make_fixtures(*client_, options_, handles_);
    co_return trouble;
  }

  Task<Verdict> run(std::size_t index) override {
    const Reply alive = co_await client_->renew();
    // Another question would wait as long.
    silent_cases_ = alive.silent() ? silent_cases_ + 1 : 0;
    if (alive.silent()) co_return Verdict::fail("the server is silent: " + alive.text());
    if (!alive.ok()) {
      const std::string trouble = co_await client_->establish();
      if (!trouble.empty()) co_return Verdict::fail("the client got no new session: " + trouble);
    }
    co_await elapsed_.renew();
    Scene scene(*client_, handles_, fmt::format("{} {}", options_.label, index));
    scene.elapsed = &elapsed_;
    const Script& script = scripts_[index];
    if (needs_folder(script)) {
      const std::string trouble = co_await make_own_folder(scene, fmt::format("case{}", index));
      if (!trouble.empty()) co_return Verdict::fail("no folder for the case: " + trouble);
    }
    Verdict verdict = co_await perform(script, scene);
    co_await tidy(scene);
    co_return verdict;
  }

  std::string given_up() const override {
    if (silent_cases_ < kSilentCases) return {};
    return fmt::format("the server was silent {} cases in a row, and is not asked for more",
                       silent_cases_);
  }

  Task<std::string> end() override {
    if (silent_cases_ == 0) {
      co_await elapsed_.end();
      co_await client_->leave();
    }
    if (!handles_.contains("work")) co_return std::string();
    // Not cancelled by an interruption.
    Client cleaner(*channel_, client_options(options_, {}));
    std::string trouble = co_await cleaner.establish();
    if (trouble.empty()) trouble = co_await remove_fixtures(cleaner, options_, handles_);
    co_await cleaner.leave();
    if (!trouble.empty())
      trouble = fmt::format("the folder '{}' remains at the server: {}", options_.label, trouble);
    co_return trouble;
  }

 private:
  static ClientOptions client_options(const SuiteOptions& options, CancelToken cancel) {
    ClientOptions client;
    client.minor = options.minor;
    client.owner = options.label + (cancel.has_source() ? "" : " cleaner");
    client.credentials = options.credentials;
    client.timeout = options.timeout;
    client.cancel = cancel;
    client.callbacks = options.callbacks;
    client.make_place = options.make_place;
    client.on_wait = options.on_wait;
    return client;
  }

  static bool needs_folder(const Script& script) {
    return script.run || !script.before.empty() ||
           std::ranges::any_of(script.steps,
                               [](const Step& step) { return step.number == v4::OP_PUTFH; });
  }

  // What the RFCs list and no script asks for; the success of an operation, too.
  void list_the_rest() {
    std::set<std::pair<v4::nfs_opnum4, v4::nfsstat4>> provoked, accepted;
    for (const Script& script : scripts_) {
      provoked.emplace(script.subject(), script.expect.front());
      for (const v4::nfsstat4 status : script.expect) accepted.emplace(script.subject(), status);
    }
    for (const OperationErrors& row : errors_of(options_.minor)) {
      std::vector<v4::nfsstat4> answers = row.errors;
      if (succeeds(row)) answers.insert(answers.begin(), v4::NFS4_OK);
      for (const v4::nfsstat4 error : answers) {
        if (provoked.contains({row.operation, error})) continue;
        Script listed;
        listed.operation = row.operation;
        listed.expect = {error};
        const bool known = accepted.contains({row.operation, error});
        cases_.push_back({title_of(listed, options_.minor),
                          known ? "one of several answers that other cases of this operation accept"
                                : why_listed(row.operation, error)});
      }
    }
  }

  const SuiteOptions options_;
  rpc::Channel* const channel_;
  const CancelToken cancel_;
  std::optional<Client> client_;
  Elapsed elapsed_;
  int silent_cases_ = 0;  // in a row, up to now
  const Scripts scripts_;
  std::vector<Case> cases_;  // of the scripts, in their order; then those that are only listed
  Handles handles_;
};

}  // namespace

std::unique_ptr<conform::Suite> make_suite(rpc::Channel* channel, SuiteOptions options,
                                           CancelToken cancel) {
  return std::make_unique<Nfs4Suite>(channel, std::move(options), cancel);
}

}  // namespace stag::conform::nfs4
