#include "xdrgen/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace xdrgen {
namespace {

// Everything but the mistake itself: where and what.
std::string complaint(std::string_view text, FileReader reader = {}) {
  Options options;
  options.name_space = "t";
  options.file = "in.x";
  options.reader = std::move(reader);
  const auto result = compile(text, options);
  const auto* message = std::get_if<Complaint>(&result);
  return message != nullptr ? *message : "fine";
}

std::string header_of(std::string_view text) {
  Options options;
  options.name_space = "t";
  const auto result = compile(text, options);
  if (const auto* message = std::get_if<Complaint>(&result)) return *message;
  return std::get<Output>(result).header;
}

struct Case {
  const char* text;
  const char* complaint;
};

class Mistakes : public ::testing::TestWithParam<Case> {};

TEST_P(Mistakes, are_reported_with_place_and_cause) {
  EXPECT_EQ(complaint(GetParam().text), GetParam().complaint);
}

INSTANTIATE_TEST_SUITE_P(
    Grammar, Mistakes,
    ::testing::Values(
        Case{"const A = ;", "in.x:1:11: expected a number or the name of a constant but found ';'"},
        Case{"const A = 09;", "in.x:1:11: '09' is not a number"},
        Case{"const A = 0x1ffffffffffffffff;",
             "in.x:1:11: 0x1ffffffffffffffff does not fit 64 bits"},
        Case{"struct a {\n  int x\n};", "in.x:3:1: expected ';' but found '}'"},
        Case{"struct a { };", "in.x:1:12: expected a type but found '}'"},
        Case{"struct a { int int; };", "in.x:1:16: expected a name but found 'int'"},
        Case{"union u { case 1: int a; };", "in.x:1:9: expected 'switch' but found '{'"},
        Case{"foo",
             "in.x:1:1: expected a definition (const, enum, struct, union, typedef or program) "
             "but found 'foo'"},
        Case{"enum e { A = 1 }", "in.x:1:17: expected ';' but found the end of the input"},
        Case{"struct a { int @; };", "in.x:1:16: unexpected character '@'"},
        Case{"/* no end", "in.x:1:1: this comment has no end"},
        Case{"const A = \"x\n\";", "in.x:1:11: this string has no end"},
        Case{"#if 1\n", "in.x:1:1: this conditional has no #endif"},
        Case{"#endif\n", "in.x:1:1: #endif without #if"},
        Case{"#define F(x) x\n", "in.x:1:1: macros with parameters are not supported"},
        Case{"#include \"none.x\"\n", "in.x:1:1: cannot read \"none.x\""}));

INSTANTIATE_TEST_SUITE_P(
    Conditions, Mistakes,
    ::testing::Values(
        Case{"#if\n#endif\n", "in.x:1:1: this conditional has no condition"},
        Case{"#if 1 +\n#endif\n", "in.x:1:1: this condition has no end"},
        Case{"#if (1\n#endif\n", "in.x:1:1: this condition has no end"},
        Case{"#if 1 ? 2\n#endif\n", "in.x:1:1: this condition has no end"},
        Case{"#if 1 2\n#endif\n", "in.x:1:1: unexpected '2' in this condition"},
        Case{"#if F(1)\n#endif\n", "in.x:1:1: unexpected '(' in this condition"},
        Case{"#if A = 1\n#endif\n", "in.x:1:1: unexpected '=' in this condition"},
        Case{"#if 09\n#endif\n", "in.x:1:1: unexpected '09' in this condition"},
        Case{"#if 1 \"+\" 1\n#endif\n", "in.x:1:1: unexpected '+' in this condition"},
        Case{"#if 0x1ffffffffffffffff\n#endif\n",
             "in.x:1:1: unexpected '0x1ffffffffffffffff' in this condition"},
        Case{"#if defined(1)\n#endif\n", "in.x:1:1: unexpected '1' in this condition"},
        Case{"#if defined\n#endif\n", "in.x:1:1: this condition has no end"},
        Case{"#if 0\n#elif 1 / 0\n#endif\n", "in.x:2:1: this condition divides by zero"},
        Case{"#if 1 % 0\n#endif\n", "in.x:1:1: this condition divides by zero"}));

INSTANTIATE_TEST_SUITE_P(
    Names, Mistakes,
    ::testing::Values(
        Case{"struct a { b x; };", "in.x:1:12: type 'b' is not defined"},
        Case{"struct a { int x<N>; };", "in.x:1:18: constant 'N' is not defined before its use"},
        Case{"const N = 1; struct a { N x; };", "in.x:1:25: 'N' is not a type"},
        Case{"struct a { int x; }; struct a { int y; };",
             "in.x:1:22: 'a' is already defined at in.x:1:1"},
        Case{"enum e { A = 1 }; const A = 2;", "in.x:1:25: 'A' is already defined at in.x:1:10"},
        Case{"struct a { int x; int x; };", "in.x:1:23: field 'x' is there twice"},
        Case{"program P { version V { void F(void) = 1; void F(int) = 2; } = 1; } = 1;",
             "in.x:1:48: 'F' is already defined"},
        Case{"program P { version V { void F(void) = 1; } = 1; version V { void F(void) = 1; } = "
             "2; }"
             " = 1;",
             "in.x:1:58: 'V' is already defined"},
        Case{"typedef a b; typedef b a;", "in.x:1:11: typedef 'b' leads back to itself"},
        Case{"typedef a b<>; typedef b a<>;", "in.x:1:11: typedef 'b' leads back to itself"}));

INSTANTIATE_TEST_SUITE_P(
    Rules, Mistakes,
    ::testing::Values(
        Case{"struct a { int x<-1>; };", "in.x:1:18: a bound must be between 0 and 4294967295"},
        Case{"struct a { opaque x; };",
             "in.x:1:19: opaque is declared as name[size], name<> or name<bound>"},
        Case{"struct a { string x[3]; };",
             "in.x:1:19: a string is declared as name<> or name<bound>"},
        Case{"struct a { void; };", "in.x:1:12: a struct cannot hold void"},
        Case{"struct a { a x; };", "in.x:1:1: 'a' contains itself"},
        Case{"struct a { b x; }; struct b { a x[2]; };", "in.x:1:1: 'a' contains itself"},
        Case{"union u switch (hyper x) { case 1: void; };",
             "in.x:1:23: a union is switched by an int, unsigned int, bool or enum"},
        Case{"union u switch (int x) { case 1: void; case 1: int a; };",
             "in.x:1:45: this case is there twice"},
        Case{"union u switch (bool x) { case 2: void; };",
             "in.x:1:32: this case is not TRUE or FALSE"},
        Case{"union u switch (unsigned x) { case -2: void; };",
             "in.x:1:36: this case is not an unsigned int"},
        Case{"enum e { A = 1 }; union u switch (e x) { case 2: void; };",
             "in.x:1:47: this case is not a member of e"},
        Case{"enum e { A = 1 }; union u switch (e x) { case 0x100000001: void; };",
             "in.x:1:47: this case is not a member of e"},
        Case{"union u switch (int x) { case -1: void; case 0xffffffff: void; };",
             "in.x:1:46: this case is there twice"},
        Case{"%// eligible: a_x\nstruct a { int x; };",
             "in.x:1:15: 'a_x' is neither a variable-length array nor optional"},
        Case{"struct a { int x<>; };\n%// eligible: a_x, b\n",
             "in.x:2:20: there is no 'b' to be eligible"},
        Case{"enum e { A = 0x100000000 };", "in.x:1:10: 'A' does not fit 32 bits"},
        Case{"program P { version V { void F(void) = 1; void G(void) = 1; } = 1; } = 1;",
             "in.x:1:48: two procedures of this version have the same number"}));

TEST(Compiler, refuses_deep_nesting_and_endless_includes) {
  std::string deep = "struct a { ";
  for (int i = 0; i < 100'000; ++i) deep += "struct { ";
  EXPECT_EQ(complaint(deep), "in.x:1:156: types are nested too deeply");
  const FileReader again = [](const std::string&) { return "#include \"again.x\"\n"; };
  EXPECT_EQ(complaint("#include \"again.x\"\n", again), "again.x:1:1: too many files are included");
}

TEST(Compiler, follows_chains_of_types_without_running_out_of_stack) {
  std::string text = "struct s0 { int x; };\n";
  for (int i = 1; i < 4000; ++i)
    text += "struct s" + std::to_string(i) + " { s" + std::to_string(i - 1) + " x; };\n";
  EXPECT_EQ(complaint(text), "fine");
}

TEST(Compiler, structures_of_two_structures_do_not_double_the_text_at_each_level) {
  std::string text = "struct s0 { int x; int y; };\n";
  for (int i = 1; i < 18; ++i) {
    const std::string below = "s" + std::to_string(i - 1);
    text += "struct s" + std::to_string(i) + " { " + below + " x; " + below + " y; };\n";
  }
  Options options;
  options.name_space = "a";
  EXPECT_LT(std::get<Output>(compile(text, options)).source.size(), 100'000u);
}

TEST(Compiler, reports_mistakes_of_included_files_there) {
  const FileReader reader = [](const std::string&) { return "struct a {\n  nothing x;\n};\n"; };
  EXPECT_EQ(complaint("#include \"part.x\"\n", reader),
            "part.x:2:3: type 'nothing' is not defined");
}

TEST(Compiler, takes_the_namespace_from_the_text_unless_told) {
  Options options;
  EXPECT_TRUE(std::holds_alternative<Complaint>(compile("const A = 1;", options)));
  const auto named = compile("%// namespace: a::b\nconst A = 1;", options);
  EXPECT_NE(std::get<Output>(named).header.find("namespace a::b {"), std::string::npos);
  options.name_space = "not a name";
  EXPECT_TRUE(std::holds_alternative<Complaint>(compile("const A = 1;", options)));
}

TEST(Compiler, macros_cannot_run_away) {
  std::string text = "#define A0 1\n";
  for (int i = 1; i < 40; ++i)
    text += "#define A" + std::to_string(i) + " A" + std::to_string(i - 1) + " A" +
            std::to_string(i - 1) + "\n";
  const std::string used = "#if 0\n#elif A39\n#endif\n";
  EXPECT_EQ(complaint(text), "fine");
  EXPECT_EQ(complaint(text + "const B = A39;"), "in.x:41:11: this macro is too long");
  EXPECT_EQ(complaint(text + used), "in.x:42:1: this condition is too long");
  const std::string empty = "#define A0\n" + text.substr(text.find('\n') + 1);
  EXPECT_EQ(complaint(empty + "const B = A39;"), "in.x:41:11: this macro is too long");
  EXPECT_EQ(complaint(empty + used), "in.x:42:1: this condition is too long");
  EXPECT_EQ(complaint("#define A B\n#define B A\nconst A = 1;"), "fine");
}

TEST(Compiler, conditions_cannot_run_away) {
  for (const char* opening : {"(", "!", "~", "1?", "1?0:", "1+("})
    for (const int times : {200, 100'000}) {
      std::string text = "#if ";
      for (int i = 0; i < times; ++i) text += opening;
      text += "1";
      EXPECT_NE(complaint(text + "\n#endif\n"), "fine") << opening;
    }
}

constexpr const char* kDefinitions =
    "#define ONE 1\n#define TWO 2\n#define IN_BRACKETS (2)\n#define EMPTY\n#define ITSELF ITSELF\n"
    "#define SUM ONE + TWO\n#define ASKS defined(ONE)\n#define LATER NOW\n#define NOW 0\n"
    "#undef NOW\n#define NOW 3\n#define GONE 1\n#undef GONE\n#define MINUS -2\n"
    "#define OVER_TWO \\\n LINES\n#define LINES 1\n";

struct Condition {
  const char* text;
  bool holds;
};

constexpr Condition kConditions[] = {
    {"ONE >= 2", false},
    {"ONE == 2", false},
    {"ONE <= 1 && ONE < 2 && TWO > ONE && ONE != TWO", true},
    {"0 || ONE", true},
    {"0 && ONE", false},
    {"1 || 0 && 0", true},
    {"defined(ONE) && defined(OTHER)", false},
    {"defined(ONE) && !defined OTHER", true},
    {"defined ( ONE )", true},
    {"!!ONE", true},
    {"(TWO >= 2)", true},
    {"IN_BRACKETS", true},
    {"IN_BRACKETS == TWO", true},
    {"TWO - 2", false},
    {"TWO -2", false},
    {"TWO-2", false},
    {"MINUS + 2", false},
    {"-MINUS == TWO", true},
    {"0L", false},
    {"0x0UL", false},
    {"0x10 == 16 && 010 == 8 && 0B11 == 3", true},
    {"UNKNOWN", false},
    {"UNKNOWN == 0", true},
    {"ITSELF", false},
    {"EMPTY 1", true},
    {"SUM == 3", true},
    {"SUM * 2 == 5", true},
    {"ASKS", true},
    {"LATER == 3", true},
    {"GONE", false},
    {"OVER_TWO", true},
    {"defined(ONE) && \\\n defined(TWO)", true},
    {"ONE /* 0 */ + 1 == TWO", true},
    {"2 + 3 * 4 == 14 && (2 + 3) * 4 == 20", true},
    {"10 - 4 - 3 == 3", true},
    {"7 / 2 == 3 && 7 % 2 == 1 && -7 / 2 == -3 && -7 % 2 == -1", true},
    {"1 << 4 == 16 && 256 >> 4 == 16 && -1 >> 1 == -1", true},
    {"(5 & 6) == 4 && (5 | 6) == 7 && (5 ^ 6) == 3", true},
    {"5 & 6 == 6", true},
    {"~0 == -1", true},
    {"-1 < 0", true},
    {"-1 < 0U", false},
    {"-1 > 0x8000000000000000", true},
    {"9223372036854775807 + 1 < 0", true},
    {"-9223372036854775807 - 1 < 0", true},
    {"ONE ? 0 : 1", false},
    {"0 ? 1 : 0 ? 1 : 2", true},
    {"0 && 1 / 0", false},
    {"1 || 1 / 0", true},
    {"1 ? 1 : 1 / 0", true},
    {"(0 ? 0u : -1) > 0", true},
};

TEST(Compiler, evaluates_conditions_as_C_does) {
  for (const Condition& condition : kConditions) {
    const std::string text = std::string(kDefinitions) + "#if " + condition.text +
                             "\nconst IS_IN = 1;\n#else\nconst IS_OUT = 1;\n#endif\n#if 0\n#elif " +
                             condition.text + "\nconst ELIF_IS_IN = 1;\n#endif\n";
    const std::string header = header_of(text);
    const auto has = [&](const char* name) { return header.find(name) != std::string::npos; };
    EXPECT_EQ(has(" IS_IN "), condition.holds) << condition.text << "\n" << header;
    EXPECT_EQ(has(" IS_OUT "), !condition.holds) << condition.text;
    EXPECT_EQ(has(" ELIF_IS_IN "), condition.holds) << condition.text;
  }
}

TEST(Compiler, evaluates_no_condition_that_is_not_reached) {
  EXPECT_EQ(complaint("#if 0\n#if 1 / 0\n#elif (\n#endif\n#endif\nconst A = 1;"), "fine");
  EXPECT_EQ(complaint("#if 1\nconst A = 1;\n#elif 1 / 0\n#endif\n"), "fine");
}

TEST(Compiler, replaces_names_by_what_they_stand_for_where_they_are_used) {
  const std::string header = header_of(
      "#define N 4\n#define M N\n#undef N\n#define N 8\nstruct s { opaque o[M]; };\n"
      "#define LATER LATEST\n%#define LATEST 16\nstruct t { opaque o[LATER]; };\n"
      "#define LATEST 32\nstruct u { opaque o[LATER]; };");
  for (const char* size : {"8", "16", "32"})
    EXPECT_NE(header.find(std::string("std::array<std::byte, ") + size + "> o"), std::string::npos)
        << size << header;
}

#ifdef RPCGEN
// rpcgen has cpp evaluate them.
TEST(Compiler, agrees_with_rpcgen_about_conditions) {
  std::string name = "/tmp/stag-rpcgen-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path folder(name);
  std::ofstream text(folder / "in.x");
  text << kDefinitions;
  for (std::size_t i = 0; i < std::size(kConditions); ++i)
    text << "#if " << kConditions[i].text << "\nconst IS_IN_" << i << " = 1;\n#endif\n";
  text << "const LAST = 1;\n";
  text.close();
  const std::string command = "cd " + name + " && " RPCGEN " -h -o out.h in.x >log 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << std::ifstream(folder / "log").rdbuf();
  std::ifstream made(folder / "out.h");
  const std::string header(std::istreambuf_iterator<char>(made), {});
  EXPECT_NE(header.find("#define LAST 1"), std::string::npos) << header;
  for (std::size_t i = 0; i < std::size(kConditions); ++i)
    EXPECT_EQ(header.find("#define IS_IN_" + std::to_string(i) + " ") != std::string::npos,
              kConditions[i].holds)
        << kConditions[i].text;
  std::filesystem::remove_all(folder);
}
#endif

struct PassedCase {
  const char* lines;
  const char* bound;  // Of `opaque data<X>`, with the lines before it, or the complaint.
};

class PassedLines : public ::testing::TestWithParam<PassedCase> {};

TEST_P(PassedLines, give_a_name_the_number_that_C_would_know) {
  const std::string text = GetParam().lines + std::string("struct s { opaque data<X>; };");
  const std::string header = header_of(text);
  const std::size_t start =
      header.find("BoundedOpaque<") + std::string_view("BoundedOpaque<").size();
  const bool made = header.find("BoundedOpaque<") != std::string::npos;
  EXPECT_EQ(made ? header.substr(start, header.find('>', start) - start) : complaint(text),
            GetParam().bound);
}

INSTANTIATE_TEST_SUITE_P(
    Known, PassedLines,
    ::testing::Values(
        PassedCase{"%#define X 1\n%#define X 2\n", "2"},
        PassedCase{"%#ifndef X\n%#define X 1\n%#endif\n", "1"},
        PassedCase{"%#define X 3\n%#ifndef X\n%#define X 1\n%#endif\n", "3"},
        PassedCase{"%#ifndef X\n%#define X 3\n%#endif\n%#ifndef X\n%#define X 1\n%#endif\n", "3"},
        PassedCase{"const X = 3;\n%#ifndef X\n%#define X 1\n%#endif\n", "X"},
        PassedCase{"%#define A\n%#ifdef A\n%#define X 1\n%#else\n%#define X 2\n%#endif\n", "1"},
        PassedCase{"%#undef A\n%#ifdef A\n%#define X 1\n%#else\n%#define X 2\n%#endif\n", "2"},
        PassedCase{"%#if 0\n%#define X 1\n%#elif defined(A)\n%#define X 2\n%#endif\n", "2"},
        PassedCase{"#define N 0\n%#if !N\n%#define X 1\n%#else\n%#define X 2\n%#endif\n", "1"},
        PassedCase{"%#if A > 1\n%#define X 2\n%#else\n%#define X 2\n%#endif\n", "2"},
        PassedCase{"%#ifdef A\n%#define X 1\n%#endif\n%#undef X\n%#define X 2\n", "2"},
        // A guard around the whole: what is within it is certain there.
        PassedCase{"%#ifndef G\n%#define X 1\n%#ifndef X\n%#define X 2\n%#endif\n", "1"},
        PassedCase{"%#define X 2\n%#ifdef A\n%#undef X\n%#define X 1\n%#else\n", "2"},
        // Other directives of the specification are rpcgen's, which sees none of these names.
        PassedCase{"%#define A 1\n#ifdef A\n%#define X 1\n#else\n%#define X 2\n#endif\n", "2"}));

constexpr const char* kOneOrTwo =
    "in.x:6:24: 'X' is 1 or 2, depending on a %#if that only a C compiler decides";

INSTANTIATE_TEST_SUITE_P(
    Questions, PassedLines,
    ::testing::Values(
        PassedCase{"%#ifdef A\n%#define X 1\n%#else\n%#define X 2\n%#endif\n", kOneOrTwo},
        PassedCase{"%#if A == 2\n%#define X 1\n%#elif 1\n%#define X 2\n%#endif\n", kOneOrTwo},
        PassedCase{"%#define X 1\n%#ifdef A\n%#undef X\n%#define X 2\n%#endif\n", kOneOrTwo},
        PassedCase{"%#ifdef A\n%#define X 1\n%#endif\n%#ifndef X\n%#define X 2\n%#endif\n",
                   "in.x:7:24: 'X' is 1 or 2, depending on a %#if that only a C compiler decides"},
        PassedCase{
            "%#ifdef A\n%#define X 1\n%#else\n%#define X (2)\n%#endif\n",
            "in.x:6:24: 'X' is 1 or something else, depending on a %#if that only a C compiler "
            "decides"}));

TEST(Compiler, a_name_of_several_numbers_that_is_not_used_is_no_mistake) {
  EXPECT_EQ(complaint("%#ifdef A\n%#define X 1\n%#else\n%#define X 2\n%#endif\nconst B = 1;"),
            "fine");
}

TEST(Compiler, spells_types_as_a_reader_would) {
  const std::string header = header_of(
      "const MAX = 4; struct item_list { string names<MAX>; opaque id[MAX]; int *next_id; };");
  EXPECT_NE(header.find("struct item_list {\n"
                        "  std::string names{};\n"
                        "  std::array<std::byte, MAX> id{};\n"
                        "  std::optional<std::int32_t> next_id{};\n"),
            std::string::npos)
      << header;
}

#ifdef RPCSVC_FOLDER
// nis_callback.x uses types of nis.x and expects its C header; here it gets the specification
// itself.
std::string with_its_types(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (path.filename() == "nis_callback.x") text.insert(0, "#include \"nis.x\"\n");
  return text;
}

TEST(Compiler, takes_every_specification_of_rpcsvc_proto) {
  std::size_t compiled = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RPCSVC_FOLDER)) {
    if (entry.path().extension() != ".x") continue;
    const FileReader reader = [](const std::string& name) {
      return with_its_types(std::filesystem::path(RPCSVC_FOLDER) / name);
    };
    EXPECT_EQ(complaint(with_its_types(entry.path()), reader), "fine") << entry.path();
    ++compiled;
  }
  EXPECT_GE(compiled, 17u);
}
#endif

}  // namespace
}  // namespace xdrgen
