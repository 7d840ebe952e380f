// Chunk lists that cannot be, or that lie (RFC 8166 3.4, 4.3, 4.5.2, 4.5.3).
#include "conform/rpcrdma/talk.h"
#include "xdr/encoder.h"

namespace stag::conform::rpcrdma {
namespace {

constexpr std::uint32_t kNowhere = 0x5a5a5a5a;  // a handle that names no memory
constexpr std::uint32_t kEnd = 0;               // of a list, or an absent chunk

// The lists of an RDMA_MSG that carries a NULL call.
Probe of_lists(Words lists, std::vector<Expect> expect) {
  return {[lists](std::uint32_t xid) {
            return joined(header_words(xid, 1, wire::RDMA_MSG, lists), null_call(xid));
          },
          0, std::move(expect)};
}
Probe of_nomsg(Words lists, std::vector<Expect> expect) {
  return {[lists](std::uint32_t xid) { return header_words(xid, 1, wire::RDMA_NOMSG, lists); }, 0,
          std::move(expect)};
}

RdmaCase in_lists(std::string group, std::string name, std::string section,
                  std::string requirements, Probe probe) {
  RdmaCase made;
  made.group = std::move(group);
  made.name = std::move(name);
  made.section = std::move(section);
  made.requirements = std::move(requirements);
  made.probe = std::move(probe);
  return made;
}

// What a mistake in the lists draws: the error, or the end of the connection where a server tries
// to reach memory first.
const std::vector<Expect> kError{Expect::ErrChunk};
const std::vector<Expect> kErrorOrLoss{Expect::ErrChunk, Expect::Lost};
const std::vector<Expect> kNotExecuted{Expect::ErrChunk, Expect::Rejected, Expect::Lost};

RdmaCases malformed_lists() {
  return {
      in_lists("read list", "a word that is neither 0 nor 1", "8166 4.5.2", "R8166-4.5.2-a",
               of_lists({2, kEnd, kEnd}, kError)),
      in_lists("read list", "an entry that ends too early", "8166 4.5.2", "R8166-4.5.2-a",
               {[](std::uint32_t xid) {
                  return header_words(xid, 1, wire::RDMA_MSG, {1, 64, kNowhere});
                },
                0, kError}),
      in_lists("read list", "no end of the list", "8166 4.5.2", "R8166-4.5.2-a",
               {[](std::uint32_t xid) {
                  return header_words(xid, 1, wire::RDMA_MSG, {1, 64, kNowhere, 4, 0, 0});
                },
                0, kError}),
      in_lists("write list", "a word that is neither 0 nor 1", "8166 4.5.2", "R8166-4.5.2-a",
               of_lists({kEnd, 7, kEnd}, kError)),
      in_lists("write list", "more segments than the message has", "8166 4.5.2", "R8166-4.5.2-a",
               of_lists({kEnd, 1, 1000, kNowhere, 4, 0, 0, kEnd, kEnd}, kError)),
      in_lists("write list", "the largest number of segments", "8166 4.5.2", "R8166-4.5.2-a",
               of_lists({kEnd, 1, ~0u, kNowhere, 4, 0, 0, kEnd, kEnd}, kError)),
      in_lists("reply chunk", "a word that is neither 0 nor 1", "8166 4.5.2", "R8166-4.5.2-a",
               of_lists({kEnd, kEnd, 9}, kError)),
      in_lists("reply chunk", "more segments than the message has", "8166 4.5.2", "R8166-4.5.2-a",
               of_lists({kEnd, kEnd, 1, 1000, kNowhere, 4, 0, 0}, kError)),
      in_lists("reply chunk", "a chunk that ends too early", "8166 4.5.2", "R8166-4.5.2-a",
               {[](std::uint32_t xid) {
                  return header_words(xid, 1, wire::RDMA_MSG, {kEnd, kEnd, 1, 1, kNowhere});
                },
                0, kError}),
  };
}

RdmaCases lying_lists() {
  return {
      in_lists("read list", "memory that is not there", "8166 4.5.3", "R8166-4.5.3-a",
               of_lists({1, 40, kNowhere, 100, 0, 0, kEnd, kEnd, kEnd}, kNotExecuted)),
      in_lists("read list", "a Position that is no multiple of four", "8166 3.4.5", "R8166-4.5.2-a",
               of_lists({1, 41, kNowhere, 100, 0, 0, kEnd, kEnd, kEnd}, kErrorOrLoss)),
      in_lists("read list", "a Position behind the end of the stream", "8166 3.4.5",
               "R8166-4.5.2-a",
               of_lists({1, 40000, kNowhere, 100, 0, 0, kEnd, kEnd, kEnd}, kNotExecuted)),
      in_lists("read list", "a chunk of 4 GiB", "8166 8.1.4", "R8166-8.1.4-a",
               of_lists({1, 40, kNowhere, ~0u, 0, 0, kEnd, kEnd, kEnd}, kNotExecuted)),
      in_lists("read list", "a segment that runs over the end of all offsets", "8166 4.5.3",
               "R8166-4.5.2-a",
               of_lists({1, 40, kNowhere, 100, ~0u, ~0u, kEnd, kEnd, kEnd}, kNotExecuted)),
      in_lists("read list", "a chunk for an argument that is not eligible", "8166 6.1",
               "R8166-6.1-c R8166-6.1-d",
               of_lists({1, 20, kNowhere, 100, 0, 0, kEnd, kEnd, kEnd}, kNotExecuted)),
      in_lists("read list", "a Position Zero chunk beside an inline message", "8166 3.5.3",
               "R8166-4.5.2-a",
               of_lists({1, 0, kNowhere, 100, 0, 0, kEnd, kEnd, kEnd},
                        {Expect::ErrChunk, Expect::Lost, Expect::Dropped, Expect::Rejected})),
      in_lists("read list", "RDMA_NOMSG with memory that is not there", "8166 4.5.3",
               "R8166-4.5.3-a",
               of_nomsg({1, 0, kNowhere, 100, 0, 0, kEnd, kEnd, kEnd}, kErrorOrLoss)),
      in_lists("read list", "RDMA_NOMSG with a message of 4 bytes", "8166 4.5.3", "R8166-4.5.3-a",
               of_nomsg({1, 0, kNowhere, 4, 0, 0, kEnd, kEnd, kEnd}, kErrorOrLoss)),
      in_lists("write list", "RDMA_NOMSG with nothing but a Write chunk", "8166 4.2.4",
               "R8166-4.2.4-d",
               of_nomsg({kEnd, 1, 1, kNowhere, 100, 0, 0, kEnd, kEnd},
                        {Expect::ErrChunk, Expect::Lost, Expect::Dropped})),
      in_lists("reply chunk", "RDMA_NOMSG with nothing but a Reply chunk", "8166 4.2.4",
               "R8166-4.2.4-d",
               of_nomsg({kEnd, kEnd, 1, 1, kNowhere, 100, 0, 0},
                        {Expect::ErrChunk, Expect::Lost, Expect::Dropped})),
      in_lists("write list", "memory that is not there and is not needed", "8166 4.3.2.2",
               "R8166-4.3.2.2-c",
               of_lists({kEnd, 1, 1, kNowhere, 100, 0, 0, kEnd, kEnd}, {Expect::Success})),
      in_lists("reply chunk", "memory that is not there and is not needed", "8166 4.3.3",
               "R8166-4.3.3-d",
               of_lists({kEnd, kEnd, 1, 1, kNowhere, 1000, 0, 0}, {Expect::Success, Expect::Lost})),
  };
}

// A Call without arguments, with the credential of all Calls: a server need not take AUTH_NONE.
Task<Verdict> refused(Context& context, std::uint32_t program, std::uint32_t version,
                      std::uint32_t procedure, Expect expect) {
  Probe probe;
  probe.words = [&](std::uint32_t xid) {
    xdr::Encoder encoder;
    oncrpc::encode(encoder, oncrpc::CallHeader{xid, program, version, procedure,
                                               context.credentials.credential()});
    const Buffer call = std::move(encoder).finish().without({}).flatten();
    Words words = header_words(xid, 1, wire::RDMA_MSG);
    for (std::size_t at = 0; at < call.size(); at += 4)
      words.push_back(load_be<std::uint32_t>(call.data() + at));
    return words;
  };
  probe.expect = {expect};
  co_return co_await perform(probe, context);
}

RdmaCase refusing(std::string name, std::string section, std::string requirements,
                  std::function<Task<Verdict>(Context&)> run) {
  RdmaCase made =
      in_lists("message", std::move(name), std::move(section), std::move(requirements), {});
  made.run = std::move(run);
  return made;
}

RdmaCases rpc_messages() {
  return {
      refusing(
          "a program that is not served", "5531 9", "R8166-3.2-a",
          [](Context& context) { return refused(context, 0x3fffffff, 1, 0, Expect::ProgUnavail); }),
      refusing("a version that is not served", "5531 9", "",
               [](Context& context) {
                 return refused(context, v4::NFS4_PROGRAM, kUnservedVersion, 0,
                                Expect::ProgMismatch);
               }),
      refusing("a procedure that there is not", "5531 9", "",
               [](Context& context) {
                 return refused(context, v4::NFS4_PROGRAM, v4::NFS_V4, 99, Expect::ProcUnavail);
               }),
      refusing("arguments that cannot be decoded", "8166 4.5.2", "R8166-4.5.2-e",
               [](Context& context) {
                 return refused(context, v4::NFS4_PROGRAM, v4::NFS_V4, 1, Expect::GarbageArgs);
               }),
      in_lists("message", "another version of RPC", "5531 9", "",
               {[](std::uint32_t xid) {
                  Words call = null_call(xid);
                  call[2] = 3;
                  return joined(header_words(xid, 1, wire::RDMA_MSG), call);
                },
                0,
                {Expect::Rejected, Expect::Dropped}}),
      in_lists("message", "no RPC message behind the header", "8166 4.5.2", "R8166-4.5.2-a",
               {[](std::uint32_t xid) { return header_words(xid, 1, wire::RDMA_MSG); },
                0,
                {Expect::ErrChunk, Expect::Dropped, Expect::Lost, Expect::Rejected}}),
      in_lists("message", "an RPC message of two words", "5531 9", "",
               {[](std::uint32_t xid) {
                  return joined(header_words(xid, 1, wire::RDMA_MSG), {xid, wire::CALL});
                },
                0,
                {Expect::Rejected, Expect::ErrChunk, Expect::Dropped, Expect::Lost}}),
  };
}

}  // namespace

RdmaCases chunk_list_cases() {
  RdmaCases all = malformed_lists();
  std::ranges::move(lying_lists(), std::back_inserter(all));
  std::ranges::move(rpc_messages(), std::back_inserter(all));
  return all;
}

// RFC 8167 5: what goes in the reverse direction, at a server that has not sent a Call.
RdmaCases reverse_cases() {
  const auto reply = [](Words lists) {
    return Probe{[lists](std::uint32_t xid) {
                   return joined(header_words(xid, 1, wire::RDMA_MSG, lists),
                                 {xid, wire::REPLY, 0, 0, 0, 0});
                 },
                 0,
                 {Expect::Dropped}};
  };
  Probe chunked = reply({kEnd, 1, 1, kNowhere, 0, 0, 0, kEnd, kEnd});
  chunked.expect.push_back(Expect::ErrChunk);
  return {
      in_lists("reverse direction", "a Reply that nobody waits for", "8167 4.3", "",
               reply({0, 0, 0})),
      in_lists("reverse direction", "a Reply with a Write chunk that nobody waits for", "8167 5.3",
               "", std::move(chunked)),
      in_lists("reverse direction", "a message that is neither Call nor Reply", "8167 4.1", "",
               {[](std::uint32_t xid) {
                  return joined(header_words(xid, 1, wire::RDMA_MSG), {xid, 2, 0, 0, 0, 0});
                },
                0,
                {Expect::Dropped, Expect::ErrChunk, Expect::Lost}}),
      in_lists("reverse direction", "an ERR_VERS for a Call that was not sent", "8166 4.2.4",
               "R8166-4.2.4-f",
               {[](std::uint32_t xid) {
                  return header_words(xid, 1, wire::RDMA_ERROR, {wire::ERR_VERS, 1, 1});
                },
                0,
                {Expect::Dropped}}),
  };
}

}  // namespace stag::conform::rpcrdma
