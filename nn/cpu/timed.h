// nn/cpu/timed.h: tasks that measure the time of other tasks.
#pragma once

#include "nn/cpu/tasks.h"
#include "nn/profile.h"

namespace nn::cpu {

// The node that a task works for, and the profile that records the task's time.
struct Account {
  Profile& profile;
  uint firstLane;  // the number that the program's lane 0 has in the profile
  NodeId node;
  Profile::Direction direction;
};

kj::Own<Task> timed(kj::Own<Task> task, Account account);
kj::Own<BatchTask> timed(kj::Own<BatchTask> task, Account account);

}  // namespace nn::cpu
