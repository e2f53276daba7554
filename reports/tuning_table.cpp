#include "reports/tuning_table.h"

#include <fmt/format.h>

#include "reports/numbers.h"
#include "reports/text_table.h"

namespace beamline::reports {

std::string tuning_table(const std::vector<TuningRow>& rows) {
  using Align = TextTable::Align;
  bool bounds = false;  // shares of the device's bound, once its peaks are measured
  for (const TuningRow& r : rows) bounds |= r.bound_share.has_value();
  std::vector<TextTable::Column> columns = {{"kernel"},
                                            {"workload"},
                                            {"status"},
                                            {"time", Align::Right},
                                            {"GFLOP/s", Align::Right},
                                            {"GB/s", Align::Right},
                                            {"vs heuristic", Align::Right},
                                            {"vs unoptimised", Align::Right},
                                            {"opts"}};
  if (bounds) columns.insert(columns.begin() + 6, {"of bound", Align::Right});
  TextTable table(columns);
  std::string notes;
  for (const TuningRow& r : rows) {
    auto over = [&](std::optional<double> other) {
      return r.best_ns && other ? std::optional(*other / *r.best_ns) : std::nullopt;
    };
    std::string opts = !r.best_ns ? "" : r.opts.empty() ? "(none)" : r.opts;
    std::vector<std::string> row = {r.kernel,
                                    r.workload,
                                    r.status,
                                    time_text(r.best_ns),
                                    digits_text(r.gflops),
                                    digits_text(r.gbps),
                                    ratio_text(over(r.heuristic_ns)),
                                    ratio_text(over(r.unoptimized_ns)),
                                    opts};
    if (bounds)
      row.insert(row.begin() + 6,
                 r.bound_share ? fmt::format("{:.0f} %", 100 * *r.bound_share) : std::string("-"));
    table.add(std::move(row));
    if (!r.note.empty()) notes += fmt::format("{}: {}\n", r.kernel, r.note);
  }
  return table.text() + (notes.empty() ? "" : "\n" + notes);
}

}  // namespace beamline::reports
