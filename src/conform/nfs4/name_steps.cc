// The steps about filehandles, attributes and names.
#include "conform/nfs4/steps.h"

namespace stag::conform::nfs4 {

Step at(std::string name) {
  return {v4::OP_PUTFH, [name](Scene& scene, Op& to) { to.opputfh().object = scene.handle(name); }};
}

Step own() {
  return at("own");
}

Step putrootfh() {
  return plain(v4::OP_PUTROOTFH);
}

Step putpubfh() {
  return plain(v4::OP_PUTPUBFH);
}

Step getfh(std::string as) {
  return {v4::OP_GETFH, {}, [as](Scene& scene, const OpResult& result) {
            scene.handles[as] = result.opgetfh().resok4().object;
          }};
}

Step savefh() {
  return plain(v4::OP_SAVEFH);
}

Step restorefh() {
  return plain(v4::OP_RESTOREFH);
}

Step lookup(std::string name) {
  return plain(v4::OP_LOOKUP, &Op::oplookup, {std::move(name)});
}

Step lookupp() {
  return plain(v4::OP_LOOKUPP);
}

Step secinfo(std::string name) {
  return plain(v4::OP_SECINFO, &Op::opsecinfo, {std::move(name)});
}

Step secinfo_no_name(v4::secinfo_style4 style) {
  return plain(v4::OP_SECINFO_NO_NAME, &Op::opsecinfo_no_name, style);
}

Step openattr() {
  return plain(v4::OP_OPENATTR, &Op::opopenattr, {false});
}

Step getattr(v4::bitmap4 asked) {
  Step step = plain(v4::OP_GETATTR, &Op::opgetattr, {std::move(asked)});
  step.take = [](Scene& scene, const OpResult& result) {
    scene.attributes = result.opgetattr().resok4().obj_attributes;
  };
  return step;
}

Step setattr(std::string state, v4::fattr4 attributes) {
  return with_state(v4::OP_SETATTR, &Op::opsetattr, &v4::SETATTR4args::stateid, std::move(state),
                    {{}, std::move(attributes)});
}

Step verify(v4::fattr4 attributes) {
  return plain(v4::OP_VERIFY, &Op::opverify, {std::move(attributes)});
}

Step nverify(v4::fattr4 attributes) {
  return plain(v4::OP_NVERIFY, &Op::opnverify, {std::move(attributes)});
}

Step verify_same() {
  return {v4::OP_VERIFY,
          [](Scene& scene, Op& to) { to.opverify().obj_attributes = scene.attributes; }};
}

Step nverify_same() {
  return {v4::OP_NVERIFY,
          [](Scene& scene, Op& to) { to.opnverify().obj_attributes = scene.attributes; }};
}

Step access(std::uint32_t wanted) {
  return plain(v4::OP_ACCESS, &Op::opaccess, {wanted});
}

Step create(std::string name, v4::nfs_ftype4 type, v4::fattr4 attributes) {
  v4::CREATE4args args;
  args.objtype.type = type;
  if (type == v4::NF4LNK) args.objtype.linkdata() = Rope::copy_of(bytes_of("target"));
  if (type == v4::NF4BLK || type == v4::NF4CHR) args.objtype.devdata() = {1, 3};
  args.objname = std::move(name);
  args.createattrs = std::move(attributes);
  return plain(v4::OP_CREATE, &Op::opcreate, std::move(args));
}

Step symlink(std::string name, std::string target) {
  v4::CREATE4args args;
  args.objtype.type = v4::NF4LNK;
  args.objtype.linkdata() = Rope::copy_of(bytes_of(target));
  args.objname = std::move(name);
  return plain(v4::OP_CREATE, &Op::opcreate, std::move(args));
}

Step remove(std::string name) {
  return plain(v4::OP_REMOVE, &Op::opremove, {std::move(name)});
}

Step rename(std::string from, std::string to) {
  return plain(v4::OP_RENAME, &Op::oprename, {std::move(from), std::move(to)});
}

Step link(std::string name) {
  return plain(v4::OP_LINK, &Op::oplink, {std::move(name)});
}

Step readlink() {
  return plain(v4::OP_READLINK);
}

Step readdir(Listing listing) {
  return {v4::OP_READDIR,
          [listing](Scene& scene, Op& to) {
            v4::READDIR4args& args = to.opreaddir();
            args.cookie = listing.after.empty() ? listing.cookie : scene.numbers[listing.after];
            if (!listing.verifier.empty()) args.cookieverf = scene.verifiers[listing.verifier];
            args.dircount = listing.dircount;
            args.maxcount = listing.maxcount;
            args.attr_request = listing.asked;
          },
          [](Scene& scene, const OpResult& result) {
            const v4::READDIR4resok& ok = result.opreaddir().resok4();
            v4::verifier4 wrong = scene.verifiers["readdir"] = ok.cookieverf;
            for (std::byte& byte : wrong) byte = ~byte;
            scene.verifiers["wrong"] = wrong;
            if (!ok.reply.entries.empty()) scene.numbers["first"] = ok.reply.entries[0].cookie;
          }};
}

}  // namespace stag::conform::nfs4
