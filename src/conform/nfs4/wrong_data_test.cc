// Servers whose statuses are right, and whose data is not, or that do nothing: the case fails, and
// says what is wrong.
#include <gmock/gmock.h>

#include "testing/nfs/wrong_answers_fixture.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names
using stag::testing::WrongAnswers;

struct WrongData {
  std::uint32_t minor;
  std::string case_name;
  nfs_opnum4 operation;
  std::function<void(nfs_resop4&)> change;
  std::string why;
};

Rope rope_of(std::string_view text) {
  return Rope::copy_of(bytes_of(text));
}

std::vector<WrongData> wrong_data() {
  return {
      {0, "READLINK.NFS4_OK, the target of a symbolic link", OP_READLINK,
       [](nfs_resop4& result) { result.opreadlink().resok4().link = rope_of("TARGET"); },
       "the link leads to 'TARGET', not 'target'"},
      {1, "READ.NFS4_OK, with the bypass stateid", OP_READ,
       [](nfs_resop4& result) { result.opread().resok4().data = rope_of("0123456780"); },
       "the data is not what was written"},
      {0, "READ.NFS4_OK, up to the end", OP_READ,
       [](nfs_resop4& result) { result.opread().resok4().eof = false; }, "eof is wrong"},
      {2, "GETXATTR.NFS4_OK, what was set", OP_GETXATTR,
       [](nfs_resop4& result) { result.opgetxattr().gxr_value() = rope_of("VALUE"); },
       "the attribute has another value than was set"},
      {2, "LISTXATTRS.NFS4_OK, of a file that has one", OP_LISTXATTRS,
       [](nfs_resop4& result) { result.oplistxattrs().lxr_value().lxr_names = {"weight"}; },
       "'colour' is not among the names"},
      {2, "READ_PLUS.NFS4_OK, data", OP_READ_PLUS,
       [](nfs_resop4& result) {
         result.opread_plus().rp_resok4().rpr_contents.front().rpc_data().d_data = rope_of("9");
       },
       "the data is not what was written"},
      {2, "READ_PLUS.NFS4_OK, data", OP_READ_PLUS,
       [](nfs_resop4& result) {
         result.opread_plus().rp_resok4().rpr_contents.front().rpc_data().d_offset = 1;
       },
       "a part does not begin where the one in front of it ends"},
      {2, "READ_PLUS.NFS4_OK, data", OP_READ_PLUS,
       [](nfs_resop4& result) { result.opread_plus().rp_resok4().rpr_contents.clear(); },
       "the data is not what was written"},
      {0, "WRITE.NFS4_OK, with an open", OP_WRITE,
       [](nfs_resop4& result) { result.opwrite().resok4().count = 0; },
       "0 of 5 bytes are said to be written"},
      {1, "WRITE.NFS4_OK, with an open", OP_WRITE,
       [](nfs_resop4& result) { result.opwrite().resok4().count = 6; },
       "6 of 5 bytes are said to be written"},
      {1, "WRITE.NFS4_OK, with an open", OP_WRITE,
       [](nfs_resop4& result) { result.opwrite().resok4().committed = DATA_SYNC4; },
       "committed at another level"},
      {1, "WRITE.NFS4_OK, unstable", OP_WRITE,
       [](nfs_resop4& result) { result.opwrite().resok4().count = 1; },
       "the data is not what was written"},
      {2, "COPY.NFS4_OK, from one file to another", OP_COPY,
       [](nfs_resop4& result) { result.opcopy().cr_resok4().cr_response.wr_count = 101; },
       "101 of 100 bytes are said to be copied"},
      {2, "COPY.NFS4_OK, from one file to another", OP_COPY,
       [](nfs_resop4& result) { result.opcopy().cr_resok4().cr_response.wr_count = 1; },
       "the data is not what was written"},
      {2, "COPY.NFS4_OK, from one file to another", OP_COPY,
       [](nfs_resop4& result) {
         result.opcopy().cr_resok4().cr_response.wr_callback_id.emplace_back();
       },
       "the copy goes on"},
  };
}

TEST_F(WrongAnswers, data_that_is_not_what_is_due) {
  for (const WrongData& wrong : wrong_data()) {
    SCOPED_TRACE(wrong.case_name + ": " + wrong.why);
    when_wrong = [&wrong](const COMPOUND4args&, COMPOUND4res& results) {
      if (results.status != NFS4_OK) return;
      for (nfs_resop4& result : results.resarray)
        if (result.resop == wrong.operation) wrong.change(result);
    };
    expect_failure(wrong.minor, "*." + wrong.case_name, wrong.why);
  }
}

// What a second open of the same owner gives is of the first one.
TEST_F(WrongAnswers, an_open_that_is_not_upgraded_but_made_anew) {
  for (const std::uint32_t minor : {0u, 1u}) {
    int opens = 0;
    const auto of_the_case = [opens](const nfs_argop4& asked) mutable {
      return asked.argop == OP_OPEN && asked.opopen().openhow.opentype == OPEN4_NOCREATE &&
             ++opens == 1;
    };
    when_wrong = [of_the_case](const COMPOUND4args& args, COMPOUND4res& results) mutable {
      if (std::ranges::find_if(args.argarray, of_the_case) == args.argarray.end()) return;
      results.resarray.back().opopen().resok4().stateid.other.front() ^= std::byte{1};
    };
    expect_failure(minor, "*.OPEN.NFS4_OK, the same owner adds access to its open",
                   "the stateid is another one than that of the open");
  }
}

struct NotDone {
  std::uint32_t minor;
  std::string case_name;
  nfs_opnum4 operation;
  std::function<void(nfs_resop4&)> say;  // the arm of its success
  std::string why;
};

std::vector<NotDone> not_done() {
  const auto set = [](nfs_resop4& result) { result.opsetattr().attrsset = {}; };
  const auto renamed = [](nfs_resop4& result) { result.oprename().resok4(); };
  const auto setxattr = [](nfs_resop4& result) { result.opsetxattr().sxr_info(); };
  const auto copied = [](nfs_resop4& result) {
    result.opcopy().cr_resok4().cr_response.wr_count = 100;
  };
  const std::string no_name = "LOOKUP behind it drew NFS4ERR_NOENT, asked for NFS4_OK",
                    still = "LOOKUP behind it drew NFS4_OK, asked for NFS4ERR_NOENT",
                    no_data = "the data is not what was written",
                    attributes = "GETATTR tells other attributes";
  return {
      {0, "CREATE.NFS4_OK, a folder", OP_CREATE,
       [](nfs_resop4& result) { result.opcreate().resok4(); }, no_name},
      {1, "CREATE.NFS4_OK, a symbolic link", OP_CREATE,
       [](nfs_resop4& result) { result.opcreate().resok4(); }, no_name},
      {1, "REMOVE.NFS4_OK, a FIFO", OP_REMOVE,
       [](nfs_resop4& result) { result.opremove().resok4(); }, still},
      {0, "LINK.NFS4_OK, a second name", OP_LINK,
       [](nfs_resop4& result) { result.oplink().resok4(); }, no_name},
      {0, "RENAME.NFS4_OK, a folder", OP_RENAME, renamed, "LOOKUP behind it drew NFS4ERR_NOENT"},
      {2, "RENAME.NFS4_OK, over a file", OP_RENAME, renamed, "VERIFY behind it"},
      {1, "SETATTR.NFS4_OK, the mode", OP_SETATTR, set, attributes},
      {1, "SETATTR.NFS4_OK, the size, with an open", OP_SETATTR, set, attributes},
      {0, "WRITE.NFS4_OK, with an open", OP_WRITE,
       [](nfs_resop4& result) {
         result.opwrite().resok4().count = 5;
         result.opwrite().resok4().committed = FILE_SYNC4;
       },
       no_data},
      {2, "COPY.NFS4_OK, from one file to another", OP_COPY, copied, no_data},
      {2, "CLONE.NFS4_OK, of whole blocks", OP_CLONE, [](nfs_resop4& result) { result.opclone(); },
       no_data},
      {2, "ALLOCATE.NFS4_OK, room in a file", OP_ALLOCATE,
       [](nfs_resop4& result) { result.opallocate(); }, no_data},
      {2, "DEALLOCATE.NFS4_OK, a hole", OP_DEALLOCATE,
       [](nfs_resop4& result) { result.opdeallocate(); }, no_data},
      {2, "SETXATTR.NFS4_OK, a new one", OP_SETXATTR, setxattr, "GETXATTR behind it drew"},
      {2, "REMOVEXATTR.NFS4_OK, one that is there", OP_REMOVEXATTR,
       [](nfs_resop4& result) { result.opremovexattr().rxr_info(); },
       "GETXATTR behind it drew NFS4_OK"},
  };
}

// What the run needs for itself is done.
bool is_of_the_case(const nfs_argop4& asked) {
  if (asked.argop == OP_CREATE) return asked.opcreate().objname == "x";
  if (asked.argop == OP_REMOVE) return asked.opremove().target == "x";
  if (asked.argop == OP_WRITE) return asked.opwrite().data.size() == 5;
  return true;
}

TEST_F(WrongAnswers, what_is_said_to_be_done_and_is_not) {
  for (const NotDone& wrong : not_done()) {
    SCOPED_TRACE(wrong.case_name);
    LeftOut lie;
    lie.is_it = [operation = wrong.operation](const nfs_argop4& asked) {
      return asked.argop == operation && is_of_the_case(asked);
    };
    lie.result.resop = wrong.operation;
    wrong.say(lie.result);
    left_out_when_wrong = std::move(lie);
    expect_failure(wrong.minor, "*." + wrong.case_name, wrong.why);
  }
}

// The run removes what it has made until nothing is listed. Our server does it in the end, so that
// a run without end would have one here.
TEST_F(WrongAnswers, a_folder_whose_files_are_never_removed) {
  LeftOut lie;
  lie.is_it = [](const nfs_argop4& asked) {
    return asked.argop == OP_REMOVE && asked.opremove().target == "file";
  };
  lie.result.resop = OP_REMOVE;
  lie.result.opremove().resok4();
  lie.times = 20;
  left_out = std::move(lie);
  const Ran ran = run(1, "*.PUTROOTFH.NFS4_OK*");
  EXPECT_THAT(ran.trouble, ::testing::HasSubstr("'file' was removed, and it is still there"));
}

// Each case that finds the server silent waits for one timeout, and so does the end of the run.
TEST_F(WrongAnswers, a_server_that_falls_silent_ends_the_run) {
  falls_silent = [](const COMPOUND4args& args) {
    return std::ranges::any_of(args.argarray, [](const nfs_argop4& asked) {
      return asked.argop == OP_REMOVE && asked.opremove().target == "x";
    });
  };
  const Ran ran = run(1, "*.RE[MN]*");
  EXPECT_THAT(ran.trouble, ::testing::HasSubstr("the server was silent 3 cases in a row"));
  EXPECT_THAT(ran.trouble, ::testing::HasSubstr("the folder 'conform' remains"));
  ASSERT_GT(ran.verdicts.size(), 3u);
  for (std::size_t i = ran.verdicts.size() - 3; i < ran.verdicts.size(); ++i)
    EXPECT_THAT(ran.verdicts[i].detail, ::testing::HasSubstr("the server is silent"));
  EXPECT_EQ(unanswered(), 5) << "of the case, three more, and the end";
}

}  // namespace
}  // namespace stag::conform::nfs4
