// Runs the loop of libfranka that the documentation shows, LOOP, on a source that is scripted.
//
// ADDRESS and the script are arguments. Each line of the script is a sample: the cycle that reads
// it first, its stamp, and torques of seven joints with two derivatives. The last line has only a
// cycle, the one behind the end. Says "over" there, or why the robot has stopped.

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <franka/robot.h>

#include HEAD

namespace
{
struct Over {};

struct Sample
{
  long cycle;
  double stamp;
  double values[21];
};

class Source
{
public:
  explicit Source(const char * script)
  {
    std::ifstream file(script);
    std::string text;
    while (std::getline(file, text)) {
      std::istringstream words(text);
      Sample sample{};
      words >> sample.cycle >> sample.stamp;
      for (double & value : sample.values) {
        std::string word;  // a stream reads no NaN
        words >> word;
        value = word.empty() ? 0.0 : std::stod(word);
      }
      samples_.push_back(sample);
    }
  }

  void read(double * stamp, double * values)
  {
    while (next_ < samples_.size() && samples_[next_].cycle <= cycle_) {
      if (next_ + 1 == samples_.size()) {throw Over();}
      newest_ = samples_[next_++];
    }
    ++cycle_;
    *stamp = newest_.stamp;
    for (int i = 0; i < 21; ++i) {values[i] = newest_.values[i];}
  }

private:
  std::vector<Sample> samples_;
  std::size_t next_ = 0;
  long cycle_ = 0;
  Sample newest_{-1, -1.0, {}};
};

void loop(franka::Robot & robot, Source & source)
{
  double stamp, values[21];
#include LOOP
}
}  // namespace

int main(int count, char ** arguments)
{
  if (count != 3) {return 2;}
  Source source(arguments[2]);
  try {
    franka::Robot robot(arguments[1], franka::RealtimeConfig::kIgnore);
    loop(robot, source);
    std::puts("refused");
  } catch (const Over &) {
    std::puts("over");
  } catch (const std::exception & error) {
    std::puts(error.what());
  }
  return 0;
}
