// Frames between the orchestrator and its helpers. A frame is a fixed prefix (magic, version, two
// lengths), a JSON header and bytes. Whatever arrives is data: garbage, a foreign version, a length
// beyond the limit or a header that is no JSON object is an error value, never an exception.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <nlohmann/json.hpp>

namespace beamline {

inline constexpr uint32_t protocol_version = 1;

struct Frame {
  // "kind" says what it is; "seq" numbers a request and comes back with its answer.
  nlohmann::json header = nlohmann::json::object();
  std::string payload;

  /// The header's "kind", or "" where it has none.
  std::string kind() const;
};

struct FrameLimits {
  uint64_t header_bytes = uint64_t{64} << 20;
  uint64_t payload_bytes = uint64_t{8} << 30;
};

/// Strings of the header that are no UTF-8 are sent with replacement characters.
std::string encode_frame(const Frame& frame);
std::string encode_frame(const nlohmann::json& header, std::string_view payload);

/// Takes bytes as they come and hands out whole frames. Memory grows with what arrived, not with
/// what a length promises. After an error it stays in error: the stream has lost its place.
class FrameDecoder {
 public:
  struct NeedMore {};
  struct Garbled {
    std::string reason;
  };
  using Result = std::variant<Frame, NeedMore, Garbled>;

  explicit FrameDecoder(FrameLimits limits = {}) : limits_(limits) {}

  void feed(std::string_view bytes);
  Result next();
  /// True within a frame: an end of the stream here has cut it.
  bool partial() const { return !error_.empty() || begin_ < buffer_.size(); }

 private:
  Garbled fail(std::string reason);

  FrameLimits limits_;
  std::string buffer_;
  size_t begin_ = 0;  // of the first byte not handed out
  std::string error_;
};

}  // namespace beamline
