#include <fmt/format.h>

#include "reports/numbers.h"
#include "reports/writers.h"

namespace beamline::reports {
namespace {

// In a cell of a table: no line breaks, no bars, nothing that Markdown or HTML would act on.
std::string cell(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("|*_`[]\\~").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out.empty() ? "-" : out;
}

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "-";
}

std::string counts_text(const std::map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& [name, n] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, name);
  return text.empty() ? "none" : text;
}

std::string run_line(const RunFacts& r) {
  std::string text = fmt::format("- run {}", r.run_id);
  if (!r.label.empty()) text += fmt::format(" \"{}\"", cell(r.label));
  text += fmt::format(": {}, started {}, budget {}, seed {}", r.status, r.started_at,
                      cell(r.budget), r.seed);
  if (r.wall_s) text += fmt::format(", {:.0f} s", *r.wall_s);
  return text + fmt::format(", engine {}, {}\n", cell(r.engine_version), cell(r.toolchain));
}

std::string kernel_row(const Report& report, const KernelFacts& k) {
  const std::string work =
      k.workloads.empty()
          ? "-"
          : k.workloads[0] +
                (k.workloads.size() > 1 ? fmt::format(" +{}", k.workloads.size() - 1) : "");
  std::string row =
      fmt::format("| {} | {} | {}{}{} | {} | {} | {} | {} | {} | {} | {} |", cell(k.name),
                  cell(work), k.status, k.pinned ? ", pinned" : "", k.stale ? ", stale" : "",
                  time_text(k.best_ns), digits_text(k.gflops), digits_text(k.gbps),
                  percent(k.bound_share), cell(gain_text(k.over_heuristic(), k.ci_low, k.ci_high)),
                  ratio_text(k.over_unoptimized()), k.ties.size());
  if (report.runs.size() > 1) row += fmt::format(" {} |", ratio_text(k.earlier_gain));
  return row + fmt::format(" {} |\n", k.best_ns ? cell(opts_or_none(k.opts)) : "-");
}

}  // namespace

std::string markdown_report(const Report& report) {
  std::string out = fmt::format("# beamline: {}\n\n", cell(report.device.name));
  out += fmt::format("- device {} ({})\n", report.device.device_id, cell(report.device.arch));
  for (const RunFacts& r : report.runs) out += run_line(r);
  out += fmt::format("- kernels: {}\n- trials: {}\n", counts_text(report.kernel_counts()),
                     counts_text(report.trial_counts()));
  if (auto v = report.mean_over_heuristic())
    out += fmt::format("- geometric mean over the heuristic: {}\n", ratio_text(v));
  if (auto v = report.mean_over_unoptimized())
    out += fmt::format("- geometric mean over the unoptimised kernels: {}\n", ratio_text(v));
  const bool two = report.runs.size() > 1;
  out +=
      "\n| kernel | workload | status | time | GFLOP/s | GB/s | of bound | vs heuristic | vs "
      "unoptimised | ties |";
  if (two) out += fmt::format(" vs heuristic, run {} |", report.runs[0].run_id);
  out += " opts |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|";
  if (two) out += "--:|";
  out += "---|\n";
  for (const KernelFacts& k : report.kernels) out += kernel_row(report, k);
  std::string failures;
  for (const KernelFacts& k : report.kernels)
    for (const Failure& f : k.failures())
      if (f.status != "rejected")
        failures += fmt::format("| {} | {} | {} | {} | {} |\n", cell(k.name), f.status, f.count,
                                cell(f.error.substr(0, 200)), cell(opts_or_none(f.opts)));
  if (!failures.empty())
    out +=
        "\n## Failed candidates\n\n| kernel | status | trials | reason | first opts "
        "|\n|---|---|--:|---|---|\n" +
        failures;
  return out;
}

}  // namespace beamline::reports
