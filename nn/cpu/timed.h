// nn/cpu/timed.h: tasks that read the clock around other tasks.
#pragma once

#include "nn/cpu/tasks.h"
#include "nn/profile.h"

namespace nn::cpu {

// Whose work a task is, and where its time is noted.
struct Account {
  Profile& profile;
  uint firstLane;  // that of the program's lane 0 in the profile
  NodeId node;
  Profile::Direction direction;
};

kj::Own<Task> timed(kj::Own<Task> task, Account account);
kj::Own<BatchTask> timed(kj::Own<BatchTask> task, Account account);

}  // namespace nn::cpu
