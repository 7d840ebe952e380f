#include "conform/rpcrdma/suite.h"

#include "conform/rpcrdma/talk.h"

namespace stag::conform::rpcrdma {
namespace {

RdmaCases all_cases() {
  RdmaCases all;
  for (const auto family :
       {connection_cases, header_cases, chunk_list_cases, credit_cases, message_cases,
        read_chunk_cases, write_chunk_cases, reverse_cases, callback_cases})
    std::ranges::move(family(), std::back_inserter(all));
  return all;
}

class RpcRdmaSuite final : public Suite {
 public:
  RpcRdmaSuite(fabric::Fabric& fabric, SuiteOptions options, CancelToken cancel)
      : options_(std::move(options)),
        context_{fabric, options_.server,      options_.timeout,
                 cancel, options_.credentials, options_.path,
                 {}},
        rdma_cases_(all_cases()) {
    for (const RdmaCase& one : rdma_cases_)
      cases_.push_back({{"rpcrdma", one.group, one.name, "RFC " + one.section, one.requirements},
                        {},
                        one.dangerous});
  }
  const std::vector<Case>& cases() const override { return cases_; }

  Task<std::string> begin() override {
    std::string why;
    const std::unique_ptr<Peer> peer = co_await greet(context_, 4096, why);
    if (peer == nullptr) co_return why;
    std::vector<v4::nfs_argop4> operations = way_to(context_);
    operations.push_back(symlink_operation(options_.label, "target"));
    v4::COMPOUND4res results;
    no_link_ = co_await compound(*peer, std::move(operations), results);
    if (no_link_.empty()) context_.link = options_.label;
    co_await peer->close();
    co_return std::string();
  }

  Task<Verdict> run(std::size_t index) override {
    const RdmaCase& one = rdma_cases_[index];
    if (one.needs_link && context_.link.empty())
      co_return Verdict::skip("no symbolic link can be made by version 4.0: " + no_link_);
    if (one.run) co_return co_await one.run(context_);
    co_return co_await perform(one.probe, context_);
  }

  Task<std::string> end() override {
    if (context_.link.empty()) co_return std::string();
    context_.cancel = {};
    std::string why;
    const std::unique_ptr<Peer> peer = co_await greet(context_, 4096, why);
    if (peer == nullptr) co_return options_.label + " remains at the server: " + why;
    std::vector<v4::nfs_argop4> operations = way_to(context_);
    operations.push_back(operation(v4::OP_REMOVE));
    operations.back().opremove() = {options_.label};
    v4::COMPOUND4res results;
    why = co_await compound(*peer, std::move(operations), results);
    co_await peer->close();
    co_return why.empty() ? why : options_.label + " remains at the server: " + why;
  }

 private:
  // Why it did not succeed, or nothing.
  Task<std::string> compound(Peer& peer, std::vector<v4::nfs_argop4> operations,
                             v4::COMPOUND4res& results) {
    const Call call = compound_call(context_, std::move(operations));
    send_call(peer, call);
    const Answer answer = co_await peer.answer_to(call.header.xid);
    if (!is_success(answer)) co_return described(answer);
    if (!decode_compound(rpc_reply(answer.payload).results, results))
      co_return "results that cannot be decoded";
    co_return results.status == v4::NFS4_OK ? "" : std::string(to_string(results.status));
  }

  const SuiteOptions options_;
  Context context_;
  const RdmaCases rdma_cases_;
  std::vector<Case> cases_;
  std::string no_link_;
};

}  // namespace

std::unique_ptr<conform::Suite> make_suite(fabric::Fabric& fabric, SuiteOptions options,
                                           CancelToken cancel) {
  return std::make_unique<RpcRdmaSuite>(fabric, std::move(options), cancel);
}

}  // namespace stag::conform::rpcrdma
