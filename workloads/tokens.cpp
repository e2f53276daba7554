#include "workloads/tokens.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace beamline::workloads {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

constexpr std::string_view symbols[] = {"...", "**", "//", "<=", ">=", "==", "!=", "+", "-",
                                        "*",   "/",  "%",  "@",  "<",  ">",  "=",  "&", "|",
                                        "^",   "~",  "(",  ")",  "[",  "]",  ",",  ":"};

class Tokenizer {
 public:
  explicit Tokenizer(const SourceText& source) : source_(source), s_(source.text()) {}

  std::vector<Token> run() {
    while (i_ < s_.size()) {
      const char c = s_[i_];
      if (c == '\n') {
        if (depth_ == 0) push(Token::Kind::Newline, i_, i_ + 1);
        i_++;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        i_++;
      } else if (c == '#') {
        while (i_ < s_.size() && s_[i_] != '\n') i_++;
      } else if (is_letter(c)) {
        const size_t begin = i_;
        while (i_ < s_.size() && (is_letter(s_[i_]) || is_digit(s_[i_]))) i_++;
        push(Token::Kind::Name, begin, i_);
      } else if (is_digit(c) || (c == '.' && i_ + 1 < s_.size() && is_digit(s_[i_ + 1]))) {
        number();
      } else if (c == '"' || c == '\'') {
        string();
      } else {
        symbol();
      }
    }
    push(Token::Kind::End, i_, i_);
    return std::move(tokens_);
  }

 private:
  Token& push(Token::Kind kind, size_t begin, size_t end) {
    Token t;
    t.kind = kind, t.text = s_.substr(begin, end - begin), t.at = source_.at(begin);
    tokens_.push_back(std::move(t));
    return tokens_.back();
  }
  void bad(size_t begin, std::string message) {
    push(Token::Kind::Bad, begin, begin).text = std::move(message);
  }

  void number() {
    const size_t begin = i_;
    bool real = false;
    const bool hex = s_.compare(i_, 2, "0x") == 0 || s_.compare(i_, 2, "0X") == 0;
    if (hex) i_ += 2;
    const auto digits = [&] {
      const auto digit = [&](char c) {
        return c == '_' || is_digit(c) ||
               (hex && std::isxdigit(static_cast<unsigned char>(c)) != 0);
      };
      while (i_ < s_.size() && digit(s_[i_])) i_++;
    };
    digits();
    if (!hex && i_ < s_.size() && s_[i_] == '.' && !(i_ + 1 < s_.size() && s_[i_ + 1] == '.')) {
      real = true, i_++;
      digits();
    }
    if (!hex && i_ < s_.size() && (s_[i_] == 'e' || s_[i_] == 'E')) {
      const size_t sign = i_ + 1 < s_.size() && (s_[i_ + 1] == '+' || s_[i_ + 1] == '-') ? 2 : 1;
      if (i_ + sign < s_.size() && is_digit(s_[i_ + sign])) {
        real = true, i_ += sign;
        digits();
      }
    }
    while (i_ < s_.size() && (is_letter(s_[i_]) || is_digit(s_[i_])))
      i_++;  // 2x is one bad word, not two
    const std::string word = s_.substr(begin, i_ - begin);
    if (word.find("__") != word.npos || word.back() == '_')
      return bad(begin, fmt::format("malformed number '{}'", word));
    std::string plain;
    for (char c : word)
      if (c != '_') plain += c;
    const char *first = plain.data() + (hex ? 2 : 0), *last = plain.data() + plain.size();
    if (!real && !hex && plain.size() > 1 && plain[0] == '0' &&
        plain.find_first_not_of('0') != plain.npos)
      return bad(begin, fmt::format("malformed number '{}': leading zeros", word));
    Token t;
    t.at = source_.at(begin), t.text = word;
    t.kind = real ? Token::Kind::Float : Token::Kind::Int;
    const auto r = real ? std::from_chars(first, last, t.number)
                        : std::from_chars(first, last, t.integer, hex ? 16 : 10);
    if (r.ec == std::errc::result_out_of_range) {
      // A float below the smallest is zero like everywhere; one above the largest is a slip.
      if (!real) return bad(begin, fmt::format("integer '{}' does not fit 64 bits", word));
      t.number = std::strtod(plain.c_str(), nullptr);
      if (std::isinf(t.number))
        return bad(begin, fmt::format("number '{}' is out of range; infinity is 'inf'", word));
    } else if (r.ec != std::errc{} || r.ptr != last) {
      return bad(begin, fmt::format("malformed number '{}'", word));
    }
    tokens_.push_back(std::move(t));
  }

  void string() {
    const size_t begin = i_;
    const char quote = s_[i_++];
    while (i_ < s_.size() && s_[i_] != quote && s_[i_] != '\n') i_++;
    if (i_ >= s_.size() || s_[i_] != quote) return bad(begin, "string is not closed on its line");
    i_++;
    push(Token::Kind::Text, begin, i_).text = s_.substr(begin + 1, i_ - begin - 2);
  }

  void symbol() {
    for (std::string_view symbol : symbols) {
      if (s_.compare(i_, symbol.size(), symbol) != 0) continue;
      push(Token::Kind::Symbol, i_, i_ + symbol.size());
      i_ += symbol.size();
      if (symbol == "(" || symbol == "[") depth_++;
      if ((symbol == ")" || symbol == "]") && depth_ > 0) depth_--;
      return;
    }
    const size_t begin = i_++;
    while (i_ < s_.size() && (static_cast<unsigned char>(s_[i_]) & 0xC0) == 0x80) i_++;
    const std::string c = s_.substr(begin, i_ - begin);
    const bool printable = static_cast<unsigned char>(c[0]) >= 0x20 && c[0] != 0x7f;
    bad(begin,
        printable ? fmt::format("unexpected character '{}'", c)
                  : fmt::format("unexpected character 0x{:02x}", static_cast<unsigned char>(c[0])));
  }

  const SourceText& source_;
  const std::string& s_;
  size_t i_ = 0;
  int depth_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const SourceText& text) { return Tokenizer(text).run(); }

std::string describe(const Token& t) {
  switch (t.kind) {
    case Token::Kind::Newline: return "end of line";
    case Token::Kind::End: return "end of text";
    case Token::Kind::Text: return fmt::format("string \"{}\"", t.text);
    default: return fmt::format("'{}'", t.text);
  }
}

}  // namespace beamline::workloads
