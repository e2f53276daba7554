#include "harness/protocol.h"

#include <cstring>

#include <fmt/format.h>

namespace beamline {
namespace {

// On one machine only, so in its own byte order.
struct Prefix {
  char magic[4];
  uint32_t version;
  uint64_t header_bytes;
  uint64_t payload_bytes;
};
static_assert(sizeof(Prefix) == 24);
constexpr char kMagic[4] = {'B', 'L', 'F', '\n'};

}  // namespace

std::string Frame::kind() const {
  if (!header.is_object()) return {};
  const auto it = header.find("kind");
  return it != header.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string encode_frame(const Frame& frame) { return encode_frame(frame.header, frame.payload); }

std::string encode_frame(const nlohmann::json& header_json, std::string_view payload) {
  const std::string header =
      header_json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  Prefix p;
  std::memcpy(p.magic, kMagic, sizeof kMagic);
  p.version = protocol_version;
  p.header_bytes = header.size();
  p.payload_bytes = payload.size();
  std::string out;
  out.reserve(sizeof p + header.size() + payload.size());
  out.append(reinterpret_cast<const char*>(&p), sizeof p);
  out += header;
  out += payload;
  return out;
}

void FrameDecoder::feed(std::string_view bytes) {
  if (!error_.empty()) return;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  }
  buffer_.append(bytes);
}

FrameDecoder::Garbled FrameDecoder::fail(std::string reason) {
  error_ = std::move(reason);
  buffer_.clear();
  begin_ = 0;
  return {error_};
}

FrameDecoder::Result FrameDecoder::next() {
  if (!error_.empty()) return Garbled{error_};
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  // A wrong magic is reported at its first byte: garbage need not be as long as a prefix.
  const size_t seen = std::min(rest.size(), sizeof kMagic);
  if (std::memcmp(rest.data(), kMagic, seen) != 0) return fail("not a frame");
  if (rest.size() < sizeof(Prefix)) return NeedMore{};
  Prefix p;
  std::memcpy(&p, rest.data(), sizeof p);
  if (p.version != protocol_version) {
    return fail(fmt::format("protocol version {}, not {}", p.version, protocol_version));
  }
  if (p.header_bytes > limits_.header_bytes || p.payload_bytes > limits_.payload_bytes) {
    return fail(
        fmt::format("a frame of {} + {} bytes is too long", p.header_bytes, p.payload_bytes));
  }
  const size_t header_bytes = p.header_bytes, payload_bytes = p.payload_bytes;
  if (rest.size() < sizeof p + header_bytes + payload_bytes) return NeedMore{};
  const std::string_view text = rest.substr(sizeof p, header_bytes);
  Frame frame;
  frame.header = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!frame.header.is_object()) return fail("the header is no JSON object");
  frame.payload = rest.substr(sizeof p + header_bytes, payload_bytes);
  begin_ += sizeof p + header_bytes + payload_bytes;
  return frame;
}

}  // namespace beamline
