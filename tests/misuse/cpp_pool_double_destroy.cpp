/* slabyard: double free: ADDRESS in cache "line" (32 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include <string>

#include "misuse.hpp"

/* A second destructor would free the string's memory again. */
struct line {
    std::string text = std::string(100, 'x');
};

int main() {
    slabyard::pool<line> lines(0, "line");
    line *object = told(lines.make());
    lines.destroy(object);
    lines.destroy(object);
}
