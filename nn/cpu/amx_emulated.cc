// Compiled for AVX-512 F, BW, VL, DQ and BF16.
#include "nn/cpu/amx_loops.h"

namespace nn::cpu {

constinit const AmxLoops EMULATED_AMX_LOOPS_16 = AmxBody<EmulatedTiles, 16>::TABLE;
constinit const AmxLoops EMULATED_AMX_LOOPS_32 = AmxBody<EmulatedTiles, 32>::TABLE;

}  // namespace nn::cpu
