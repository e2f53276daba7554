// The schema of the database file: private tables, and the stable views that users query. A view's
// names, types and order are a contract: a later version adds columns at the end only, while tables
// change as migrations need. The version is PRAGMA user_version, the owner PRAGMA application_id.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "db/sqlite.h"

namespace beamline::db {

inline constexpr int application_id = 0x424d4c4e;  // "BMLN"

/// One step of the schema; steps are listed in ascending order and never edited once released.
struct Migration {
  int version;      // the version it leads to
  const char* sql;  // statements without BEGIN and COMMIT; may rebuild tables
};
std::span<const Migration> migrations();
int schema_version();  // of the last step

/// Throws DbError unless the database is empty or ours and not newer than `newest`. Changes
/// nothing.
void check_owner(const Database& db, int newest = schema_version());

/// For writers: checks the owner, chooses the journal, and brings the database to the last step.
/// Each step is one transaction: a failing one leaves the version before it. Safe in several
/// processes at once.
void migrate(Database& db, std::span<const Migration> steps = migrations());

/// Makes the database where there is no file, whole or not at all: it is written under a name of
/// its own beside `path` and then linked. Safe in several processes at once; ":memory:" is left
/// alone.
void create_if_missing(const std::string& path, const OpenOptions& options = {});

/// For readers: throws DbError unless it is a beamline database of exactly this version.
void require_schema(const Database& db);

/// Names of the stable views, in the order in which they are documented.
const std::vector<std::string>& view_names();

}  // namespace beamline::db
