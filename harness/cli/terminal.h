// What people see while a command runs: log lines and one live line, on stderr. Not thread safe.
#pragma once
#include <string>
#include <string_view>

namespace beamline::cli {

enum class Color { Auto, Always, Never };

/// Auto: only on a terminal, and not where NO_COLOR is set.
bool wants_color(Color choice, int fd);

class Log {
 public:
  enum class Level { Quiet, Normal, Verbose };

  Log() = default;
  explicit Log(Level level);
  /// A plain line. Errors and warnings are shown even when quiet.
  void info(std::string_view text);
  void detail(std::string_view text);  // with --verbose only
  void warn(std::string_view text);
  void error(std::string_view text);
  /// The live line: replaces the last one on a terminal, at most ten times a second; nothing
  /// elsewhere.
  void live(std::string_view text);
  void end_live();

 private:
  void line(std::string_view text);
  Level level_ = Level::Normal;
  bool terminal_ = false;
  bool live_shown_ = false;
  double last_live_s_ = -1;
};

/// Columns of the terminal behind a descriptor; 80 where it is none.
int terminal_columns(int fd);

}  // namespace beamline::cli
