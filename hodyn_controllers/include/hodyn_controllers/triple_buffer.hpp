// A value that one thread writes and another reads: the newest one, without locks and allocation.

#ifndef HODYN_CONTROLLERS__TRIPLE_BUFFER_HPP_
#define HODYN_CONTROLLERS__TRIPLE_BUFFER_HPP_

#include <array>
#include <atomic>
#include <cstdint>

namespace hodyn_controllers
{

/// Three values: one being written, one being read, and the newest between them.
///
/// Values are written and read in place, so those that own memory (all of one size) keep it.
/// One thread at a time may call the functions of the writer, and one those of the reader.
template<typename T>
class TripleBuffer
{
public:
  explicit TripleBuffer(const T & initial)
  : values_{initial, initial, initial} {}

  /// What the writer fills.
  T & back() {return values_[writing_];}

  /// Makes what was filled the newest value.
  void publish()
  {
    writing_ = between_.exchange(writing_ | kNew, std::memory_order_acq_rel) & kIndex;
  }

  /// Takes the newest value; whether there is one that was not taken before.
  bool take()
  {
    if ((between_.load(std::memory_order_relaxed) & kNew) == 0) {
      return false;
    }
    reading_ = between_.exchange(reading_, std::memory_order_acq_rel) & kIndex;
    return true;
  }

  /// What the reader took last.
  const T & front() const {return values_[reading_];}

private:
  static constexpr std::uint8_t kNew = 4;
  static constexpr std::uint8_t kIndex = 3;
  std::array<T, 3> values_;
  std::uint8_t writing_ = 0;
  std::atomic<std::uint8_t> between_{1};
  std::uint8_t reading_ = 2;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__TRIPLE_BUFFER_HPP_
