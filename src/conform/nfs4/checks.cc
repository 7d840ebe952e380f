#include "conform/nfs4/checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace stag::conform::nfs4 {
namespace {

// Longer than any file whose content is compared.
constexpr std::uint32_t kWhole = 8192;

using CheckResult = std::function<std::string(Scene&, const OpResult&)>;

Check of_last(CheckResult check) {
  return [check = std::move(check)](Scene& scene, const v4::COMPOUND4res& results) {
    if (results.status != v4::NFS4_OK) return std::string();
    return check(scene, results.resarray.back());
  };
}

std::string content_of(const Rope& data) {
  const Buffer flat = data.flatten();
  return std::string(text_of(flat.bytes()));
}

std::string compared(const v4::READ4resok& ok, std::string_view text, bool eof) {
  if (content_of(ok.data) != text) return "the data is not what was written";
  return ok.eof == eof ? "" : "eof is wrong";
}

// Appends a part to what was read before it; false: it does not begin where that ends.
bool continued(std::string& all, const v4::read_plus_content& part) {
  if (part.rpc_content == v4::NFS4_CONTENT_HOLE) {
    const v4::data_info4& hole = part.rpc_hole();
    // A hole may be told in its entirety, which may be as long as no file here.
    if (hole.di_offset > all.size()) return false;
    const std::uint64_t twice = all.size() - hole.di_offset;
    const std::uint64_t more = hole.di_length > twice ? hole.di_length - twice : 0;
    all.append(std::min<std::uint64_t>(more, kWhole), '\0');
    return true;
  }
  if (part.rpc_data().d_offset != all.size()) return false;
  all += content_of(part.rpc_data().d_data);
  return true;
}

v4::bitmap4 without_empty_words(v4::bitmap4 mask) {
  while (!mask.empty() && mask.back() == 0) mask.pop_back();
  return mask;
}

}  // namespace

Check reads(std::string text, bool eof) {
  return of_last([=](Scene&, const OpResult& result) {
    return compared(result.opread().resok4(), text, eof);
  });
}

Check reads_what_was_written(std::size_t zeros, std::string text) {
  return of_last([=](Scene& scene, const OpResult& result) {
    const std::string due = std::string(zeros, '\0') + text.substr(0, scene.numbers["written"]);
    return compared(result.opread().resok4(), due, true);
  });
}

Check reads_plus(std::string text) {
  return of_last([=](Scene&, const OpResult& result) -> std::string {
    const v4::read_plus_res4& ok = result.opread_plus().rp_resok4();
    std::string all;
    for (const v4::read_plus_content& part : ok.rpr_contents)
      if (!continued(all, part)) return "a part does not begin where the one in front of it ends";
    if (all.empty() || !text.starts_with(all)) return "the data is not what was written";
    return ok.rpr_eof && all != text ? "eof is wrong" : "";
  });
}

Check wrote(std::uint32_t bytes, v4::stable_how4 stable) {
  return of_last([=](Scene&, const OpResult& result) -> std::string {
    const v4::WRITE4resok& ok = result.opwrite().resok4();
    if (ok.count > bytes || (ok.count == 0 && bytes > 0))
      return fmt::format("{} of {} bytes are said to be written", ok.count, bytes);
    if (ok.committed < stable || ok.committed > v4::FILE_SYNC4)
      return "the data is committed at another level than was asked for";
    return {};
  });
}

Check copied(std::uint64_t bytes) {
  return of_last([=](Scene&, const OpResult& result) -> std::string {
    const v4::write_response4& response = result.opcopy().cr_resok4().cr_response;
    if (!response.wr_callback_id.empty()) return "the copy goes on, and was to be synchronous";
    if (response.wr_count > 0 && response.wr_count <= bytes) return {};
    return fmt::format("{} of {} bytes are said to be copied", response.wr_count, bytes);
  });
}

Check attributes_are(v4::fattr4 expected) {
  return of_last([=](Scene&, const OpResult& result) {
    const v4::fattr4& came = result.opgetattr().resok4().obj_attributes;
    const bool same = without_empty_words(came.attrmask) == expected.attrmask &&
                      content_of(came.attr_vals) == content_of(expected.attr_vals);
    return same ? "" : "GETATTR tells other attributes than are due";
  });
}

Check leads_to(std::string target) {
  return of_last([=](Scene&, const OpResult& result) {
    const std::string came = content_of(result.opreadlink().resok4().link);
    return came == target ? "" : fmt::format("the link leads to '{}', not '{}'", came, target);
  });
}

Check xattr_is(std::string value) {
  return of_last([=](Scene&, const OpResult& result) {
    return content_of(result.opgetxattr().gxr_value()) == value
               ? ""
               : "the attribute has another value than was set";
  });
}

Check xattrs_have(std::string name) {
  return of_last([=](Scene&, const OpResult& result) {
    const auto& names = result.oplistxattrs().lxr_value().lxr_names;
    return std::ranges::find(names, name) != names.end()
               ? ""
               : fmt::format("'{}' is not among the names", name);
  });
}

Proof has_type(std::string name, v4::nfs_ftype4 type) {
  return {{own(), lookup(std::move(name)), getattr(bits({kType}))},
          v4::NFS4_OK,
          attributes_are(type_is(static_cast<std::uint32_t>(type)))};
}

Proof names_the_same(std::string name) {
  return {{own(), lookup(std::move(name)), verify_same()}};
}

Proof name_is_gone(std::string name) {
  return {{own(), lookup(std::move(name))}, v4::NFS4ERR_NOENT};
}

Proof was_renamed_to(std::string name) {
  return {{own(), lookup(std::move(name)), verify_same(), own(), lookup("x")}, v4::NFS4ERR_NOENT};
}

Proof holds(std::string file, Check check) {
  return {{at(file), read(file, 0, kWhole)}, v4::NFS4_OK, std::move(check)};
}

}  // namespace stag::conform::nfs4
