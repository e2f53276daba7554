#include <fmt/format.h>

#include "reports/html_text.h"
#include "reports/numbers.h"
#include "reports/writers.h"

namespace beamline::reports {
namespace {

std::string property(const std::string& name, const std::string& value) {
  return fmt::format("    <property name=\"{}\" value=\"{}\"/>\n", name, escaped(value));
}

std::string why_failed(const KernelFacts& k) {
  for (const Failure& f : k.failures())
    if (f.status != "rejected") return f.status + (f.error.empty() ? "" : ": " + f.error);
  return "no schedule became a result";
}

std::string test_case(const KernelFacts& k) {
  const std::string work = k.workloads.empty() ? "kernel" : k.workloads[0];
  std::string out =
      fmt::format("  <testcase classname=\"{}\" name=\"{}\">\n", escaped(work), escaped(k.name));
  if (k.status == "failed")
    out += fmt::format("    <failure message=\"not tuned\">{}</failure>\n", escaped(why_failed(k)));
  if (k.status == "untuned") out += "    <skipped message=\"nothing was tried\"/>\n";
  if (k.best_ns) {
    std::string text =
        fmt::format("{}: {}, {} over the heuristic, {} over unoptimised, opts {}", k.status,
                    time_text(k.best_ns), gain_text(k.over_heuristic(), k.ci_low, k.ci_high),
                    ratio_text(k.over_unoptimized()), opts_or_none(k.opts));
    if (k.stale) text += "; stale: " + k.stale_reason;
    out += fmt::format("    <system-out>{}</system-out>\n", escaped(text));
  }
  return out + "  </testcase>\n";
}

}  // namespace

std::string junit_report(const Report& report) {
  auto counts = report.kernel_counts();
  const RunFacts run = report.runs.empty() ? RunFacts{} : report.runs.back();
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format(
      "<testsuites>\n<testsuite name=\"beamline run {}\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
      "skipped=\"{}\" timestamp=\"{}\" time=\"{:.3f}\" hostname=\"{}\">\n",
      run.run_id, report.kernels.size(), counts["failed"], counts["untuned"],
      escaped(run.started_at), run.wall_s.value_or(0), escaped(run.host));
  out += "  <properties>\n" + property("device", report.device.name) +
         property("device_id", report.device.device_id) + property("engine", run.engine_version) +
         property("toolchain", run.toolchain) + property("seed", fmt::format("{}", run.seed)) +
         "  </properties>\n";
  for (const KernelFacts& k : report.kernels) out += test_case(k);
  return out + "</testsuite>\n</testsuites>\n";
}

}  // namespace beamline::reports
