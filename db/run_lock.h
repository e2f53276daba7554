// Which process holds which run: one locked byte per run in the file "<database>-runs". The kernel
// frees it however the holder ends, so that neither a reused process id, another pid namespace nor
// another host is mistaken for it. The file stays empty and may be deleted when no run is on.
//
// The lock belongs to the RunLock object (an open file description); a child made by fork()
// without exec shares it. One thread at a time. Throws DbError if the file cannot be locked.
#pragma once
#include <cstdint>
#include <set>
#include <string>

namespace beamline::db {

class RunLock {
 public:
  explicit RunLock(const std::string& database);  // opens nothing before the first use
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  bool hold(int64_t run);  // false: another one holds it
  void release(int64_t run);
  bool held(int64_t run);  // by anyone, this object included

 private:
  bool set(int64_t run, short type);
  int file();

  std::string database_, path_;
  int fd_ = -1;
  std::set<int64_t> mine_;
};

}  // namespace beamline::db
