// Compiled for AVX-512 F, BW, VL, DQ and BF16. AMX's instructions are written out.
#include "nn/cpu/amx_loops.h"

namespace nn::cpu {

constinit const AmxLoops AMX_LOOPS_16 = AmxBody<AmxTiles, 16>::TABLE;
constinit const AmxLoops AMX_LOOPS_32 = AmxBody<AmxTiles, 32>::TABLE;

}  // namespace nn::cpu
