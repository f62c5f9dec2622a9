// Counts what is allocated. For one file of a program.

#ifndef ALLOCATIONS_HPP_
#define ALLOCATIONS_HPP_

#include <cstddef>
#include <cstdlib>
#include <new>

inline long allocations = 0;

// Compilers that see both inside would warn that what comes from `new` goes to `free`.
#define NOT_INLINED __attribute__((noinline))

NOT_INLINED void * operator new(std::size_t size)
{
  ++allocations;
  if (void * found = std::malloc(size)) {
    return found;
  }
  throw std::bad_alloc();
}

NOT_INLINED void operator delete(void * memory) noexcept {std::free(memory);}
NOT_INLINED void operator delete(void * memory, std::size_t) noexcept {std::free(memory);}

#endif  // ALLOCATIONS_HPP_
