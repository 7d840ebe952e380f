// What outlives its Call keeps of an export: the file system, and the terms of the Call, as they
// were. The Call keeps the export no longer than it lasts.
#pragma once

#include <memory>

#include "nfs/export/admission.h"

namespace stag::nfs {

class KeptExport {
 public:
  explicit KeptExport(const ExportObject& object)
      : export_{object.export_->id,
                {object.export_->path(), object.export_->spec.file_system, {}},
                object.export_->store},
        options_(*object.options) {}
  KeptExport(const KeptExport&) = delete;

  // The object, one of this export, lives no longer than this from now on.
  void keep(ExportObject& object) const {
    object.export_ = &export_;
    object.options = &options_;
  }

 private:
  const Export export_;
  const ExportOptions options_;
};
using KeptExportPtr = std::shared_ptr<const KeptExport>;

// The object, which may be none, lives as long as what is returned.
inline KeptExportPtr keep_export(ExportObject& object) {
  if (object.export_ == nullptr) return nullptr;
  auto kept = std::make_shared<const KeptExport>(object);
  kept->keep(object);
  return kept;
}

}  // namespace stag::nfs
