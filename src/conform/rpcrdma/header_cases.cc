// Fixed fields of the Transport header, and messages that are too short (RFC 8166 4.2, 4.5, 4.6,
// 7).
#include <fmt/format.h>

#include <utility>

#include "conform/rpcrdma/talk.h"

namespace stag::conform::rpcrdma {
namespace {

// A NULL call under a header of this version and procedure.
std::function<Words(std::uint32_t)> call_with(std::uint32_t version, std::uint32_t proc) {
  return
      [=](std::uint32_t xid) { return joined(header_words(xid, version, proc), null_call(xid)); };
}

RdmaCase of_version(std::uint32_t version) {
  return {.group = "version",
          .name = fmt::format("rdma_vers {} draws ERR_VERS", version),
          .section = "8166 4.5.1",
          .requirements = "R8166-4.5.1-a R8166-4.5.1-b R8166-4.1.2-g R8166-4.5-e R8166-4.5-g",
          .probe = {call_with(version, wire::RDMA_MSG), 0, {Expect::ErrVers}}};
}

RdmaCase of_procedure(std::uint32_t proc) {
  return {.group = "procedure",
          .name = fmt::format("rdma_proc {}, which is undefined", proc),
          .section = "8166 4.5.2",
          .requirements = "R8166-4.5.2-b R8166-4.1.2-h",
          .probe = {call_with(1, proc), 0, {Expect::ErrChunk}}};
}

RdmaCase of_length(std::uint32_t bytes) {
  return {.group = "length",
          .name = fmt::format("a message of {} bytes is dropped", bytes),
          .section = "8166 4.5",
          .requirements = "R8166-4.5-b R8166-4.5-j",
          .probe = {call_with(1, wire::RDMA_MSG), bytes, {Expect::Dropped}}};
}

Task<Verdict> echoes_the_version(Context& context) {
  constexpr std::uint32_t kVersion = 7;
  std::string why;
  const std::unique_ptr<Peer> peer = co_await greet(context, 4096, why);
  if (peer == nullptr) co_return Verdict::fail("no connection: " + why);
  const std::uint32_t xid = context.next_xid();
  peer->send(bytes_of_words(call_with(kVersion, wire::RDMA_MSG)(xid)));
  const Answer answer = co_await peer->next();
  co_await peer->close();
  if (answer.kind != Answer::Kind::Error)
    co_return Verdict::fail(described(answer) + " came, asked for ERR_VERS");
  if (answer.error.version != kVersion || answer.error.xid != xid)
    co_return Verdict::fail(
        fmt::format("the error has version {} and XID {:#x}, the call had {} "
                    "and {:#x}",
                    answer.error.version, answer.error.xid, kVersion, xid));
  if (answer.size != wire::kErrVersSize)
    co_return Verdict::fail(fmt::format("the error has {} bytes, not 28", answer.size));
  co_return Verdict::pass();
}

RdmaCase procedure_case(std::string name, std::string section, std::string requirements,
                        Probe probe) {
  return {.group = "procedure",
          .name = std::move(name),
          .section = std::move(section),
          .requirements = std::move(requirements),
          .probe = std::move(probe)};
}

// Messages that a Responder does not expect from a Requester.
RdmaCases unexpected_procedures() {
  const auto words_of = [](std::uint32_t proc, Words body) {
    return [proc, body = std::move(body)](std::uint32_t xid) {
      return header_words(xid, 1, proc, body);
    };
  };
  const auto padded_call = [](std::uint32_t xid) {
    return joined(header_words(xid, 1, wire::RDMA_MSGP, {64, 64, 0, 0, 0}), null_call(xid));
  };
  return {
      procedure_case("RDMA_MSGP is not served", "8166 4.6.1", "R8166-4.6.1-b",
                     {padded_call, 0, {Expect::ErrChunk, Expect::Dropped}}),
      procedure_case("RDMA_DONE is dropped", "8166 4.6.2", "R8166-4.6.2-b",
                     {call_with(1, wire::RDMA_DONE), 0, {Expect::Dropped}}),
      procedure_case("RDMA_DONE of 16 bytes is dropped", "8166 4.6.2", "R8166-4.6.2-b",
                     {call_with(1, wire::RDMA_DONE), 16, {Expect::Dropped}}),
      procedure_case("RDMA_ERROR from a Requester is dropped", "8166 4.2.4", "R8166-4.2.4-f",
                     {words_of(wire::RDMA_ERROR, {wire::ERR_CHUNK}), 0, {Expect::Dropped}}),
      procedure_case("RDMA_ERROR with an unknown code is dropped", "8166 4.5", "R8166-4.5-i",
                     {words_of(wire::RDMA_ERROR, {99, 0, 0, 0}), 0, {Expect::Dropped}}),
      procedure_case("RDMA_NOMSG without any chunk", "8166 4.5.2", "R8166-4.5.2-c R8166-4.2.4-c",
                     {[](std::uint32_t xid) { return header_words(xid, 1, wire::RDMA_NOMSG); },
                      0,
                      {Expect::ErrChunk}}),
  };
}

}  // namespace

RdmaCases header_cases() {
  RdmaCases cases;
  for (const std::uint32_t version : {0u, 2u, 0x7fffffffu, ~0u})
    cases.push_back(of_version(version));
  for (const std::uint32_t proc : {5u, 256u, ~0u}) cases.push_back(of_procedure(proc));
  for (const std::uint32_t bytes : {1u, 4u, 12u, 16u, 20u, 24u, 27u})
    cases.push_back(of_length(bytes));
  cases.push_back({.group = "version",
                   .name = "the error repeats XID and rdma_vers",
                   .section = "8166 4.5",
                   .requirements = "R8166-4.5-e R8166-4.5-f R8166-4.1.2-g",
                   .run = echoes_the_version});
  for (RdmaCase& each : unexpected_procedures()) cases.push_back(std::move(each));
  // RFC 8166 4.2.1: a receiver MAY go by rdma_xid alone, and then sees no difference.
  cases.push_back({.group = "xid",
                   .name = "rdma_xid and the XID of the RPC message differ",
                   .section = "8166 4.5.2",
                   .requirements = "R8166-4.5.2-d R8166-4.2.1-a",
                   .probe = {[](std::uint32_t xid) {
                               return joined(header_words(xid, 1, wire::RDMA_MSG),
                                             null_call(xid ^ 0x10000));
                             },
                             0,
                             {Expect::ErrChunk, Expect::Success}}});
  return cases;
}

}  // namespace stag::conform::rpcrdma
