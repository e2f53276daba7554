#include "harness/commands/ir_trace_view.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "harness/commands/ir_trace_text.h"

namespace beamline::cli {
namespace {

constexpr std::string_view help =
    "n p: next, previous pass   j k: rewrite   J K: ten   g G: first, last   q: quit";

// A terminal that gives every key at once and shows another screen meanwhile.
class RawTerminal {
 public:
  RawTerminal() {
    tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1, raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    put("\x1b[?1049h\x1b[?25l");
  }
  ~RawTerminal() {
    put("\x1b[?25h\x1b[?1049l");
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  static void put(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
      if (n <= 0) return;
      text.remove_prefix(static_cast<size_t>(n));
    }
  }

 private:
  termios before_{};
};

std::string cut(std::string s, size_t columns) {
  if (s.size() > columns && columns > 0) s.replace(columns - 1, std::string::npos, "~");
  return s;
}
// A long text in lines of the screen's width.
void wrap(const std::string& s, size_t columns, size_t most, std::vector<std::string>& out) {
  for (size_t at = 0, n = 0; at < s.size() && n < most; at += columns, n++)
    out.push_back(s.substr(at, columns));
}

}  // namespace

TraceScreen::TraceScreen(const RecordedTrace& trace, std::string title)
    : trace_(trace), title_(std::move(title)) {}

bool TraceScreen::key(const std::string& key) {
  if (key == "q" || key == "\x03" || key.empty()) return false;
  if (trace_.passes().empty()) return true;
  const size_t passes = trace_.passes().size();
  const size_t count = trace_.passes()[pass_].rewrites.size();
  const auto go = [&](int64_t by) {
    const int64_t last = std::max<int64_t>(0, static_cast<int64_t>(count) - 1);
    rewrite_ =
        static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(rewrite_) + by, 0, last));
  };
  if (key == "n" || key == "\x1b[C") {
    if (pass_ + 1 < passes) pass_++, rewrite_ = 0;
  } else if (key == "p" || key == "\x1b[D") {
    if (pass_ > 0) pass_--, rewrite_ = 0;
  } else if (key == "j" || key == "\x1b[B") {
    go(1);
  } else if (key == "k" || key == "\x1b[A") {
    go(-1);
  } else if (key == "J" || key == "\x1b[6~") {
    go(10);
  } else if (key == "K" || key == "\x1b[5~") {
    go(-10);
  } else if (key == "g") {
    rewrite_ = 0;
  } else if (key == "G") {
    go(static_cast<int64_t>(count));
  }
  return true;
}

std::string TraceScreen::draw(size_t rows, size_t columns, bool color) const {
  const TraceNodes nodes(trace_);
  std::vector<std::string> lines{cut(title_, columns)};
  for (size_t i = 0; i < trace_.passes().size(); i++)
    lines.push_back(cut((i == pass_ ? "> " : "  ") + pass_line(trace_.passes()[i]), columns));
  const size_t current = pass_ + 1;
  std::vector<std::string> below;
  std::vector<TracedRewrite> none;
  const auto& rewrites = trace_.passes().empty() ? none : trace_.passes()[pass_].rewrites;
  if (!rewrites.empty()) {
    const TracedRewrite& r = rewrites[rewrite_];
    below.push_back(cut(fmt::format("{}/{}  {}  {}:{}  {:.0f} ns", rewrite_ + 1, rewrites.size(),
                                    r.rule, r.file, r.line, r.ns),
                        columns));
    wrap("  #" + std::to_string(r.before) + " " + nodes.expression(r.before, 5), columns, 4, below);
    wrap("-> #" + std::to_string(r.after) + " " + nodes.expression(r.after, 5), columns, 4, below);
  }
  below.push_back(cut(std::string(help), columns));
  const size_t used = lines.size() + below.size();
  const size_t room = rows > used ? rows - used : 0;
  const size_t first = rewrite_ > room / 2 ? rewrite_ - room / 2 : 0;
  size_t marked = 0;
  for (size_t i = first; i < rewrites.size() && i < first + room; i++) {
    if (i == rewrite_) marked = lines.size();
    lines.push_back((i == rewrite_ ? "> " : "  ") +
                    rewrite_line(nodes, rewrites[i], columns > 2 ? columns - 2 : 1));
  }
  while (lines.size() + below.size() < rows) lines.emplace_back();
  std::string out;
  for (size_t i = 0; i < lines.size(); i++) {
    const bool bright = color && (i == current || (marked > 0 && i == marked));
    out += (bright ? "\x1b[7m" + lines[i] + "\x1b[0m" : lines[i]) + "\n";
  }
  for (size_t i = 0; i < below.size(); i++) out += below[i] + (i + 1 < below.size() ? "\n" : "");
  return out;
}

void view_trace(const RecordedTrace& trace, const std::string& title, bool color) {
  TraceScreen screen(trace, title);
  const RawTerminal terminal;
  std::string key = " ";
  do {
    winsize size{};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const size_t rows = size.ws_row > 0 ? size.ws_row : 24;
    const size_t columns = size.ws_col > 0 ? size.ws_col : 80;
    RawTerminal::put("\x1b[H\x1b[2J" + screen.draw(rows, columns, color));
    char bytes[8];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    key.assign(bytes, n > 0 ? static_cast<size_t>(n) : 0);
  } while (screen.key(key));
}

}  // namespace beamline::cli
