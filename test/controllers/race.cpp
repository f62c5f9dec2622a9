// One thread writes values that hold one number throughout, another reads them.

#include <cstdio>
#include <thread>
#include <vector>

#include "hodyn_controllers/triple_buffer.hpp"

int main()
{
  constexpr int kLast = 200000;
  hodyn_controllers::TripleBuffer<std::vector<int>> buffer(std::vector<int>(64, 0));
  std::thread writer([&buffer]() {
      for (int i = 1; i <= kLast; ++i) {
        buffer.back().assign(64, i);
        buffer.publish();
      }
    });
  int last = 0, taken = 0;
  bool is_right = true;
  while (last < kLast) {
    if (!buffer.take()) {
      continue;
    }
    ++taken;
    const int value = buffer.front().front();
    is_right = is_right && value > last;
    for (const int other : buffer.front()) {
      is_right = is_right && other == value;
    }
    last = value;
  }
  writer.join();
  std::printf("%s %d\n", is_right ? "right" : "wrong", taken);
  return 0;
}
