# The manual page of docs/exports.md as C++, for `stag manual exports`.
# cmake -Dpython=PROGRAM -Droot=DIR -Ddate=2026-11-23 -Dversion=0.1.0 -Dto=FILE.cc -P exports_page.cmake
execute_process(COMMAND ${python} ${root}/cmake/manual_of_markdown.py stag-exports 5 "which folders stag serve exports, and to whom" ${date} ${version}
  INPUT_FILE ${root}/docs/exports.md OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
file(WRITE ${to} "#include \"cli/support/exports_page.h\"

namespace stag::cli {

std::string_view exports_page() {
  return R\"page(${page})page\";
}

}  // namespace stag::cli
")
