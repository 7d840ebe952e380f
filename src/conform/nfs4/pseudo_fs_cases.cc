// The pseudo file system that leads from the root to the exports, where a server has one: no client
// changes it, and it is another file system than theirs (RFC 8881 7.3, RFC 7530 7.3). A user who
// can write the root does no harm there: the case asks first whether a folder can be made, and no
// step names anything that a server may have.
#include <fmt/format.h>

#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// Into the attributes of the scene.
Task<std::string> look_at(Scene& scene, const char* folder, Attribute attribute) {
  Steps steps;
  steps.push_back(at(folder));
  steps.push_back(getattr(bits({attribute})));
  co_return co_await prepare(scene, std::move(steps));
}

// Passes where the root is one, else says why nothing can be asked there.
Task<Verdict> is_read_only(Scene& scene, const std::string& name) {
  std::string trouble = co_await look_at(scene, "root", kFsid);
  const fattr4 root = scene.attributes;
  if (trouble.empty()) trouble = co_await look_at(scene, "work", kFsid);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  if (root == scene.attributes)
    co_return Verdict::skip("the root of the server is the export itself");
  Steps making;
  making.push_back(at("root"));
  making.push_back(create(name, NF4DIR));
  const Reply made = co_await send(scene, making);
  if (!made.ok()) {
    const bool forbidden = made.answered() && (made.results.status == NFS4ERR_ACCESS ||
                                               made.results.status == NFS4ERR_PERM);
    if (forbidden) co_return Verdict::skip("this user may not write to the root of the server");
    co_return expect(made, {NFS4ERR_ROFS}, "CREATE in the root of the server");
  }
  Steps removing;
  removing.push_back(at("root"));
  removing.push_back(remove(name));
  trouble = co_await prepare(scene, std::move(removing));
  if (!trouble.empty()) trouble = fmt::format(", and '{}' remains there: {}", name, trouble);
  co_return Verdict::skip("the root of the server can be written to" + trouble);
}

// SETATTR of the attributes that were looked at last.
Step set_same() {
  return {OP_SETATTR, [](Scene& scene, Op& to) { to.opsetattr() = {{}, scene.attributes}; }};
}

using NamedSteps = std::function<Steps(const std::string& name)>;

Task<Verdict> changes_root(Scene& scene, NamedSteps make, Statuses allowed) {
  std::string name = scene.label;
  for (char& letter : name)
    if (letter == ' ') letter = '-';
  Verdict first = co_await is_read_only(scene, name);
  if (first.outcome != Outcome::Pass) co_return first;
  const std::string trouble = co_await look_at(scene, "root", kMode);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  const Steps steps = make(name);
  const Reply reply = co_await send(scene, steps);
  if (reply.answered() && reply.results.status == NFS4ERR_NOTSUPP && optional(steps.back().number))
    co_return Verdict::skip("the server does not offer " + name_of(steps.back().number) + " there");
  co_return expect(reply, allowed, "in the root of the server");
}

// The first of `allowed` names the case.
Script in_root(std::string note, Minors minors, NamedSteps make, Statuses allowed) {
  const nfs_opnum4 operation = make("x").back().number;
  Script script =
      asked(operation, allowed.front(), std::move(note), minors,
            [make, allowed](Scene& scene) { return changes_root(scene, make, allowed); });
  script.expect = std::move(allowed);
  script.section = minors == k40 ? "7530 7.3" : "8881 7.3";
  return script;
}

// A name that is not there may be found out first.
Scripts changes(Minors minors) {
  return {
      in_root("a folder in the pseudo file system", minors,
              [](const std::string& name) {
                return Steps{at("root"), create(name, NF4DIR)};
              },
              {NFS4ERR_ROFS}),
      in_root("a new file in the pseudo file system", minors,
              [](const std::string& name) {
                return Steps{at("root"), open({.name = name, .create = UNCHECKED4})};
              },
              {NFS4ERR_ROFS}),
      in_root("the mode that the root of a pseudo file system has", minors,
              [](const std::string&) {
                return Steps{at("root"), set_same()};
              },
              {NFS4ERR_ROFS}),
      in_root("in the pseudo file system", minors,
              [](const std::string& name) {
                return Steps{at("root"), remove(name)};
              },
              {NFS4ERR_ROFS, NFS4ERR_NOENT}),
      in_root("in the pseudo file system", minors,
              [](const std::string& name) {
                return Steps{at("root"), savefh(), rename(name, name + "-new")};
              },
              {NFS4ERR_ROFS, NFS4ERR_NOENT}),
      in_root("into the pseudo file system", minors,
              [](const std::string& name) {
                return Steps{at("work"), savefh(), at("root"), rename("link", name)};
              },
              {NFS4ERR_XDEV, NFS4ERR_ROFS}),
      in_root("a file into the pseudo file system", minors,
              [](const std::string& name) {
                return Steps{at("file"), savefh(), at("root"), link(name)};
              },
              {NFS4ERR_XDEV, NFS4ERR_ROFS}),
      in_root("a new one in the pseudo file system", minors,
              [](const std::string&) {
                return Steps{at("root"), plain(OP_OPENATTR, &Op::opopenattr, {true})};
              },
              {NFS4ERR_ROFS, NFS4ERR_NOENT}),
  };
}

}  // namespace

Scripts pseudo_fs_cases() {
  Scripts all = changes(k40);
  append(all, changes(kSessions));
  append(all,
         {in_root("in the pseudo file system", k42,
                  [](const std::string& name) {
                    return Steps{at("root"),
                                 plain(OP_SETXATTR, &Op::opsetxattr, {SETXATTR4_EITHER, name, {}})};
                  },
                  {NFS4ERR_ROFS}),
          in_root("in the pseudo file system", k42,
                  [](const std::string& name) {
                    return Steps{at("root"), plain(OP_REMOVEXATTR, &Op::opremovexattr, {name})};
                  },
                  {NFS4ERR_ROFS, NFS4ERR_NOXATTR})});
  return all;
}

}  // namespace stag::conform::nfs4
