#include "workloads/source_text.h"

#include <cstdint>

namespace beamline::workloads {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// A cursor over the bytes of a file that counts lines and columns.
class Cursor {
 public:
  Cursor(std::string_view s, SourcePos at) : s_(s), at_(at) {}
  bool done() const { return i_ >= s_.size(); }
  char peek(size_t ahead = 0) const { return i_ + ahead < s_.size() ? s_[i_ + ahead] : '\0'; }
  bool starts(std::string_view p) const { return s_.substr(i_).starts_with(p); }
  SourcePos at() const { return at_; }
  void skip(size_t n) {
    while (n-- > 0 && i_ < s_.size()) {
      if (s_[i_] == '\n')
        at_ = {at_.line + 1, 1};
      else if (i_ + 1 >= s_.size() || !continues(s_[i_ + 1]))
        at_.column++;
      i_++;
    }
  }

 private:
  std::string_view s_;
  size_t i_ = 0;
  SourcePos at_;
};

std::string utf8(uint32_t c) {
  std::string s;
  if (c < 0x80) {
    s += static_cast<char>(c);
  } else if (c < 0x800) {
    s += static_cast<char>(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    s += static_cast<char>(0xE0 | c >> 12);
    s += static_cast<char>(0x80 | (c >> 6 & 0x3F));
  } else {
    s += static_cast<char>(0xF0 | c >> 18);
    s += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    s += static_cast<char>(0x80 | (c >> 6 & 0x3F));
  }
  if (c >= 0x80) s += static_cast<char>(0x80 | (c & 0x3F));
  return s;
}

size_t offset_of(std::string_view file, SourcePos p) {
  size_t i = 0;
  for (int line = 1; line < p.line && i < file.size(); i++)
    if (file[i] == '\n') line++;
  for (int column = 1; column < p.column && i < file.size(); column++)
    for (i++; i < file.size() && continues(file[i]);) i++;
  return i;
}

// Reads the literal's body; what it does not understand ends the reading, and the caller compares.
void decode(Cursor& c, std::string& text, std::vector<SourcePos>& at) {
  const char quote = c.peek();
  const std::string_view triple = quote == '"' ? "\"\"\"" : "'''";
  const bool multi = c.starts(triple);
  c.skip(multi ? 3 : 1);
  if (multi) c.skip(c.starts("\r\n") ? 2 : c.peek() == '\n' ? 1 : 0);
  const auto put = [&](std::string_view bytes, SourcePos p) {
    text += bytes;
    at.insert(at.end(), bytes.size(), p);
  };
  while (!c.done()) {
    const SourcePos p = c.at();
    if (multi && c.starts(triple)) {
      // Up to two quotes may stand directly before the closing three.
      while (c.peek(3) == quote) put(std::string_view(&quote, 1), c.at()), c.skip(1);
      return;
    }
    if (!multi && c.peek() == quote) return;
    if (quote == '"' && c.peek() == '\\') {
      const char e = c.peek(1);
      c.skip(2);
      switch (e) {
        case 'n': put("\n", p); break;
        case 't': put("\t", p); break;
        case 'r': put("\r", p); break;
        case 'b': put("\b", p); break;
        case 'f': put("\f", p); break;
        case '"': put("\"", p); break;
        case '\\': put("\\", p); break;
        case 'u':
        case 'U': {
          uint32_t v = 0;
          for (int k = e == 'u' ? 4 : 8; k > 0; k--, c.skip(1)) {
            const char h = c.peek();
            v = v * 16 + static_cast<uint32_t>(h <= '9' ? h - '0' : (h | 32) - 'a' + 10);
          }
          put(utf8(v), p);
          break;
        }
        default:  // a line-ending backslash swallows white space up to the next text
          while (!c.done() &&
                 (c.peek() == ' ' || c.peek() == '\t' || c.peek() == '\r' || c.peek() == '\n'))
            c.skip(1);
      }
      continue;
    }
    if (c.starts("\r\n")) {
      c.skip(1);
      put("\n", p);
      c.skip(1);
      continue;
    }
    const char byte = c.peek();
    put(std::string_view(&byte, 1), p);
    c.skip(1);
  }
}

}  // namespace

SourceText::SourceText(std::string_view plain) : text_(plain) {
  Cursor c(plain, {1, 1});
  for (size_t i = 0; i <= plain.size(); i++, c.skip(1)) at_.push_back(c.at());
}

SourceText::SourceText(std::string_view file, SourcePos begin, std::string_view value)
    : text_(value) {
  Cursor c(file.substr(offset_of(file, begin)), begin);
  std::string decoded;
  decode(c, decoded, at_);
  at_.push_back(c.at());
  if (decoded != value) at_.assign(value.size() + 1, begin);
}

SourceText SourceText::sub(size_t begin, size_t end) const {
  SourceText s;
  s.text_ = text_.substr(begin, end - begin);
  s.at_.assign(at_.begin() + static_cast<std::ptrdiff_t>(begin),
               at_.begin() + static_cast<std::ptrdiff_t>(end) + 1);
  return s;
}

}  // namespace beamline::workloads
