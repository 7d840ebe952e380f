// LoadedLibrary: a library that is looked for when its functions are needed, so that programs start
// without it. It is never unloaded: its threads and exit handlers stay.
//
// What includes this is linked with ${CMAKE_DL_LIBS}.
#pragma once

#include <dlfcn.h>

#include <string>

namespace stag {

class LoadedLibrary {
 public:
  explicit LoadedLibrary(const std::string& name)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) note_failure();
  }

  template <class Function>
  LoadedLibrary& find(const char* name, Function*& function) {
    if (handle_ == nullptr) return *this;
    find_newer(name, function);
    if (function == nullptr) note_failure();
    return *this;
  }
  // May be missing.
  template <class Function>
  LoadedLibrary& find_newer(const char* name, Function*& function) {
    if (handle_ != nullptr) function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    return *this;
  }
  // What was missing first; empty when everything was there.
  const std::string& failure() const { return failure_; }

 private:
  void note_failure() {
    const char* text = ::dlerror();
    if (failure_.empty()) failure_ = text != nullptr ? text : "unknown error";
  }

  void* const handle_;
  std::string failure_;
};

}  // namespace stag
