// The schema: private tables, and the stable views that users query (README "Query the database"). A view
// gains columns at its end at most; tables may change with a migration.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/sqlite.h"

namespace beamline::db {

inline constexpr int application_id = 0x424d4c4e;  // "BMLN"

struct Migration {
  int version;       // the version it leads to
  const char* sql;
};
std::span<const Migration> migrations();
int schema_version();

/// Brings a database to the newest version, in one transaction per step. Throws DbError for a file of another
/// application or of a newer beamline.
void migrate(Database& db, std::span<const Migration> steps = migrations());
/// Throws DbError unless the database is a beamline database of this version.
void require_schema(const Database& db);

/// Names of the stable views, in the order in which they are documented.
std::vector<std::string> view_names();

}  // namespace beamline::db
