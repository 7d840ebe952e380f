/* The same numbers on both sides, in C and in C++. */
#pragma once

#include <stdint.h>

struct rng {
  uint64_t state;
};

static inline uint64_t draw_u64(struct rng* rng) {
  uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static inline uint32_t draw_u32(struct rng* rng) {
  return (uint32_t)(draw_u64(rng) >> 32);
}
static inline uint32_t draw_below(struct rng* rng, uint32_t bound) {
  return draw_u32(rng) % bound;
}
static inline struct rng rng_of_value(uint32_t index) {
  struct rng rng = {index * 1000003u + 12345u};
  return rng;
}
