// Compiled for AVX-512 F, BW, VL, DQ and BF16.
#include "nn/cpu/amx_loops.h"

namespace nn::cpu {

constinit const AmxLoops EMULATED_AMX_LOOPS = AmxBody<EmulatedTiles>::TABLE;

size_t amxScratch(const AmxWindow& window) {
  return AmxBody<EmulatedTiles>::Rows(window).values(window);
}

}  // namespace nn::cpu
