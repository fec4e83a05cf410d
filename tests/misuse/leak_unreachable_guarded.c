/* SLABYARD=guard=all
 * slabyard: 1 object leaked: 64 bytes in cache "order", allocated TIME ago by:
 *     STACK make_order lose_order main
 *   total: 1 object, 64 bytes
 * ends with 0 */
#include "leak_unreachable.c"
