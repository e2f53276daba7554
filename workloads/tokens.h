// Tokens of the compute language. Line ends count only outside brackets.
#pragma once
#include <string>
#include <vector>

#include "workloads/source_text.h"

namespace beamline::workloads {

struct Token {
  enum class Kind { Name, Int, Float, Text, Symbol, Newline, End, Bad };
  Kind kind = Kind::End;
  std::string text;  // the symbol, name or contents of the string; the message of a Bad token
  SourcePos at;
  int64_t integer = 0;
  double number = 0;
  bool is(std::string_view symbol) const { return kind == Kind::Symbol && text == symbol; }
  bool name(std::string_view n) const { return kind == Kind::Name && text == n; }
};

/// The tokens of a text; the last one is End.
std::vector<Token> tokenize(const SourceText& text);
/// How a message names a token: "'+'", "end of line".
std::string describe(const Token& t);

}  // namespace beamline::workloads
