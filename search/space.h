// The schedules a kernel can have, as opt texts. A search knows kernels only through this, so that
// no UOp leaves the engine and a test can search a space without a compiler. Thread safety: const
// members may be called from several threads.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace beamline {
struct Target;
}

namespace beamline::search {

class ScheduleSpace {
 public:
  virtual ~ScheduleSpace() = default;
  /// What the kernel gets without search; "" where nothing helps.
  virtual std::string heuristic() const = 0;
  /// Schedules that are worth a start besides; in a fixed order, best guess first.
  virtual std::vector<std::string> starts() const { return {}; }
  /// Sequences one legal action longer than `opts`, in a fixed order.
  virtual std::vector<std::string> extensions(const std::string& opts) const = 0;
  /// Legal neighbours of the same length or one shorter: one action's amount is another, or one
  /// action is left out. In a fixed order.
  virtual std::vector<std::string> variations(const std::string& opts) const = 0;
};

/// The engine's action table on a prepared kernel in UOp text. Throws std::invalid_argument on a
/// text that is no kernel.
std::unique_ptr<ScheduleSpace> engine_space(std::string_view ast_text, const Target& target);

}  // namespace beamline::search
