// Compiled programs on disk, across runs and processes: contents, which only the caller
// understands, by the hash of all that they depend on. A cache is never in the way: what cannot be
// read or written is a miss and a warning.
//
// One file a program, written beside and renamed, so that readers and writers of any number of
// processes see whole files only. Contents carry their SHA-256, which is checked on each read: a
// damaged file is removed and said. A file's time of modification is when it was used last; the
// longest unused are removed where the limit is reached. Programs are code that will run: a folder
// that others own or may write to is not used. Not thread safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace beamline {

/// What compiled code depends on; all of it is in its name.
struct ProgramKey {
  std::string kernel;     // text of the prepared AST: at least as fine as the kernel key
  std::string opts;       // as asked for
  std::string target;     // target_text
  std::string flags;      // whatever else the request asks for
  std::string engine;     // version of the engine, and which build of it
  std::string toolchain;  // "llvm 19.1.7"
  std::string host;       // the processor that a target "native" means
  /// 64 hex digits.
  std::string hash() const;
};

class ProgramCache {
 public:
  /// Nothing is touched before the first call. Each process may exceed the limit by a sixteenth.
  ProgramCache(std::string folder, uint64_t limit_bytes);

  struct Found {
    std::optional<std::string> contents;  // nothing: a miss
    std::string warning;                  // of a miss that should have been none
  };
  /// `key`: ProgramKey::hash.
  Found find(const std::string& key);
  /// Keeps or replaces; a warning that says why not, else empty. Contents larger than a sixteenth
  /// of the limit are not kept, without a word. After a failure nothing is written any more.
  std::string put(const std::string& key, const std::string& contents);

  std::string path_of(const std::string& key) const;

 private:
  std::string unusable();  // why, if so; makes the folder
  std::string write(const std::string& key, const std::string& bytes);
  void make_room(uint64_t incoming);

  std::string folder_;
  uint64_t limit_;
  uint64_t written_ = 0;  // since the folder was last looked through
  bool scanned_ = false;
  bool off_ = false;   // the folder cannot be used
  bool full_ = false;  // it cannot be written to
};

}  // namespace beamline
