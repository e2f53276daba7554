#include "harness/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace beamline::cli {
namespace {

constexpr double live_interval_s = 0.1;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_all(FILE* to, std::string_view text) { std::fwrite(text.data(), 1, text.size(), to); }

}  // namespace

bool wants_color(Color choice, int fd) {
  if (choice != Color::Auto) return choice == Color::Always;
  return isatty(fd) == 1 && std::getenv("NO_COLOR") == nullptr;
}

int terminal_columns(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Log::Log(Level level) : level_(level), terminal_(isatty(STDERR_FILENO) == 1) {}

void Log::line(std::string_view text) {
  end_live();
  write_all(stderr, text);
  write_all(stderr, "\n");
  std::fflush(stderr);
}

void Log::info(std::string_view text) {
  if (level_ != Level::Quiet) line(text);
}
void Log::detail(std::string_view text) {
  if (level_ == Level::Verbose) line(text);
}
void Log::warn(std::string_view text) { line("warning: " + std::string(text)); }
void Log::error(std::string_view text) { line("beamline: " + std::string(text)); }

void Log::live(std::string_view text) {
  if (!terminal_ || level_ == Level::Quiet) return;
  double now = now_s();
  if (now - last_live_s_ < live_interval_s) return;
  last_live_s_ = now;
  live_shown_ = true;
  write_all(stderr, "\r\033[K");
  write_all(stderr, text.substr(0, static_cast<size_t>(terminal_columns(STDERR_FILENO) - 1)));
  std::fflush(stderr);
}

void Log::end_live() {
  if (!live_shown_) return;
  live_shown_ = false;
  write_all(stderr, "\r\033[K");
}

}  // namespace beamline::cli
