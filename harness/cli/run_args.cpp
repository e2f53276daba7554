#include "harness/cli/run_args.h"

#include <fmt/format.h>

#include "db/runs.h"
#include "harness/cli/errors.h"

namespace beamline::cli {

int64_t find_run(const db::Database& database, const std::string& name, const std::string& option) {
  auto found = db::find_run(database, name);
  if (const auto* why = std::get_if<std::string>(&found))
    throw UsageError(fmt::format("{}: {}", option, *why));
  return std::get<db::RunInfo>(found).run_id;
}

}  // namespace beamline::cli
