// The exception of the database: a failing world with its context. Expected refusals are values.
#pragma once
#include <stdexcept>
#include <string>

namespace beamline::db {

/// What kind of trouble it is, for callers that can go on in another way.
enum class Fault {
  Other,
  Busy,      // another process held it for longer than OpenOptions.busy_ms
  ReadOnly,  // the file or its directory cannot be written
  Missing,   // no such file, or no such row
  NotADatabase,
  Damaged,
  OtherApplication,
  Newer,       // schema of a newer beamline
  Older,       // schema of an older one, opened for reading
  Constraint,  // a row that the schema does not accept
};

/// what() = "database FILE: MESSAGE (STATEMENT)".
class DbError : public std::runtime_error {
 public:
  DbError(Fault fault, std::string file, std::string message, std::string statement = {});
  Fault fault() const { return fault_; }
  const std::string& file() const { return file_; }
  const std::string& message() const { return message_; }
  const std::string& statement() const { return statement_; }

 private:
  Fault fault_;
  std::string file_, message_, statement_;
};

}  // namespace beamline::db
