#include "kernels/strings/pattern.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace heddle {
namespace {

const std::vector<std::string> kTexts = {
    "",      "a",     "aa",   "aab",   "ab",   "abcd",       "abc", "xyz", "2024-05", "me@site.com",
    "HELLO", "hello", "a\nc", "axc",   "b",    ".*",         "é",   "éé",  "Aé",      "aaab",
    "abb",   "aba",   "A",    "a{,2}", "a\nb", "one two",    "!?",  "]a]", "a-a",     "a_b",
    "k",     "K",     "\t",   "x",     "\n",   "aaaaaaaaab", "É",   "日本"};

// The texts that match, by ONNX Runtime's RegexFullMatch.
struct Case {
  std::string pattern;
  std::set<std::string> matches;
};
const Case kCases[] = {
    {"", {""}},
    {"a", {"a"}},
    {"a*", {"", "a", "aa"}},
    {"a+b?", {"a", "aa", "aab", "ab", "aaab", "aaaaaaaaab"}},
    {"(ab|cd)*", {"", "ab", "abcd"}},
    {"[a-c]{2,3}", {"aa", "aab", "ab", "abc", "abb", "aba"}},
    {"[^a-c]+",
     {"xyz", "2024-05", "HELLO", "hello", ".*", "é", "éé", "Aé", "A", "one two", "!?", "k", "K",
      "\t", "x", "\n", "É", "日本"}},
    {"\\d{4}-\\d\\d", {"2024-05"}},
    {"\\w+@\\w+\\.(com|org)", {"me@site.com"}},
    {"(?i)hello", {"HELLO", "hello"}},
    {"(?i:h)ELLO", {"HELLO"}},
    {"^a$", {"a"}},
    {"a$b", {}},
    {"a.c", {"abc", "axc"}},
    {"(?s)a.c", {"abc", "a\nc", "axc"}},
    {"\\Aab\\z", {"ab"}},
    {"\\bab\\b", {"ab"}},
    {"\\Bb", {}},
    {"x{0}", {""}},
    {"a{2,}", {"aa"}},
    {"[]a]+", {"a", "aa", "]a]"}},
    {"[a-]+", {"a", "aa", "a-a"}},
    {"[[:alpha:]_]+",
     {"a", "aa",   "aab", "ab",  "abcd", "abc", "xyz", "HELLO", "hello", "axc",
      "b", "aaab", "abb", "aba", "A",    "a_b", "k",   "K",     "x",     "aaaaaaaaab"}},
    {"[[:^digit:]]*",
     {"",      "a",     "aa",   "aab", "ab",   "abcd",    "abc",        "xyz", "me@site.com",
      "HELLO", "hello", "a\nc", "axc", "b",    ".*",      "é",          "éé",  "Aé",
      "aaab",  "abb",   "aba",  "A",   "a\nb", "one two", "!?",         "]a]", "a-a",
      "a_b",   "k",     "K",    "\t",  "x",    "\n",      "aaaaaaaaab", "É",   "日本"}},
    {"[\\d\\s]+", {"\t", "\n"}},
    {"\\x41\\x{e9}", {"Aé"}},
    {"\\101", {"A"}},
    {"é+", {"é", "éé"}},
    {"[à-ü]+", {"é", "éé"}},
    {"(a*)*", {"", "a", "aa"}},
    {"(a|b)*abb", {"abb"}},
    {"\\Q.*\\E", {".*"}},
    {"a|", {"", "a"}},
    {"(?:ab)+?", {"ab"}},
    {"(?P<n>a)b", {"ab"}},
    {"a{,2}", {"a{,2}"}},
    {"[^\\n]*", {"",    "a",       "aa",          "aab",   "ab",         "abcd", "abc",
                 "xyz", "2024-05", "me@site.com", "HELLO", "hello",      "axc",  "b",
                 ".*",  "é",       "éé",          "Aé",    "aaab",       "abb",  "aba",
                 "A",   "a{,2}",   "one two",     "!?",    "]a]",        "a-a",  "a_b",
                 "k",   "K",       "\t",          "x",     "aaaaaaaaab", "É",    "日本"}},
    {"(?m)a$\\n^b", {"a\nb"}},
    {"\\S+\\s\\S+", {"a\nc", "a\nb", "one two"}},
    {"[[:punct:]]+", {".*", "!?"}},
    {"\\D*",
     {"",      "a",     "aa",   "aab", "ab",   "abcd",    "abc",        "xyz", "me@site.com",
      "HELLO", "hello", "a\nc", "axc", "b",    ".*",      "é",          "éé",  "Aé",
      "aaab",  "abb",   "aba",  "A",   "a\nb", "one two", "!?",         "]a]", "a-a",
      "a_b",   "k",     "K",    "\t",  "x",    "\n",      "aaaaaaaaab", "É",   "日本"}},
    {"\\W", {"é", "\t", "\n", "É"}},
    {"(?i)[^k]", {"a", "b", "é", "A", "\t", "x", "\n", "É"}},
    {"(|a)+", {"", "a", "aa"}},
    {"((a{0,3}){0,3})b", {"aab", "ab", "b", "aaab", "aaaaaaaaab"}},
    {"\\t", {"\t"}},
};

TEST(Pattern, MatchesWholeTexts) {
  for (const Case& c : kCases) {
    const auto pattern = Pattern::Compile(c.pattern);
    ASSERT_TRUE(pattern.ok()) << c.pattern << ": " << pattern.status().ToString();
    for (const std::string& text : kTexts)
      EXPECT_EQ(pattern->MatchesAll(text), c.matches.contains(text))
          << "'" << c.pattern << "' and '" << text << "'";
  }
}

// A pattern's first match in a text, and its groups; what Perl and RE2 find.
struct Found {
  std::string pattern, text;
  size_t from;
  std::vector<std::string> groups;  // "-": matched nothing; empty: no match
};

TEST(Pattern, FindsTheFirstMatchAndItsGroups) {
  const Found cases[] = {
      {"b+", "abbbc", 0, {"bbb"}},
      {"b+?", "abbbc", 0, {"b"}},
      {"(a|ab)(c|bcd)?", "xabcd", 0, {"abcd", "a", "bcd"}},
      {"(?:(x)|(y))z", "xyz", 0, {"yz", "-", "y"}},
      {"^a", "aa", 1, {}},
      {"\\bcat\\b", "concat cat", 0, {"cat"}},
      {"a*", "baa", 0, {""}},
      {"a*", "baa", 1, {"aa"}},
      {"(?U)a+", "aaa", 0, {"a"}},
      {"(?U)a+?", "aaa", 0, {"aaa"}},
      {"(a*)(a*)", "aa", 0, {"aa", "aa", ""}},
      {"[\u00e9]", "a\u00e9", 0, {"\u00e9"}},
      {"q", "abc", 0, {}},
      {"$", "ab", 0, {""}},
      {"(a(b)?)+", "aba", 0, {"aba", "a", "b"}},
  };
  for (const Found& c : cases) {
    const auto pattern = Pattern::Compile(c.pattern);
    ASSERT_TRUE(pattern.ok()) << c.pattern;
    const auto match = pattern->Find(c.text, c.from);
    ASSERT_EQ(match.has_value(), !c.groups.empty()) << c.pattern << " in " << c.text;
    for (size_t k = 0; k < c.groups.size(); ++k) {
      const size_t begin = match->places[2 * k], end = match->places[2 * k + 1];
      EXPECT_EQ(begin == Pattern::Match::kNowhere ? "-" : c.text.substr(begin, end - begin),
                c.groups[k])
          << c.pattern << " in " << c.text << ", group " << k;
    }
  }
}

TEST(Pattern, WhatIsWrongIsRefused) {
  for (const char* text : {"a{1001}", "**", "a**", "(", "[z-a]", "(?=a)", "a)", "[[:foo:]]", "\\8",
                           "\\p{L}", "\xff", "[a", "a{2,1}", "(?x)a", "\\"}) {
    const auto pattern = Pattern::Compile(text);
    EXPECT_FALSE(pattern.ok()) << text;
    if (!pattern.ok()) {
      EXPECT_FALSE(pattern.status().message().empty());
    }
  }
  EXPECT_FALSE(Pattern::Compile(std::string(1000, '(') + std::string(1000, ')')).ok());
  EXPECT_FALSE(Pattern::Compile("((((a{0,100}){0,100}){0,100}){0,100})").ok());
}

TEST(Pattern, BytesThatAreNoTextMatchNothing) {
  const auto any = Pattern::Compile("(?s).*");
  ASSERT_TRUE(any.ok());
  EXPECT_TRUE(any->MatchesAll(std::string("a\0b", 3)));
  for (const char* text : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"})
    EXPECT_FALSE(any->MatchesAll(text)) << text;
}

// A matcher that goes back would take longer than anybody waits.
TEST(Pattern, NoTextTakesLong) {
  const auto pattern = Pattern::Compile("(a+)+(a|aa)*$b?");
  ASSERT_TRUE(pattern.ok());
  std::string text(20000, 'a');
  EXPECT_TRUE(pattern->MatchesAll(text));
  text.back() = 'c';
  EXPECT_FALSE(pattern->MatchesAll(text));
}

}  // namespace
}  // namespace heddle
