// Compiled for AVX-512 F, BW, VL, DQ and BF16. AMX's instructions are written out.
#include "nn/cpu/amx_loops.h"

namespace nn::cpu {

constinit const AmxLoops AMX_LOOPS = AmxBody<AmxTiles>::TABLE;

}  // namespace nn::cpu
