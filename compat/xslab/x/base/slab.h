/*
 * x/base/slab.h: the pools of xslab under the path that its repository has today. Everything is in
 * xbase/slab.h, the path that xslab's document names.
 */
#ifndef SLABYARD_COMPAT_X_BASE_SLAB_H
#define SLABYARD_COMPAT_X_BASE_SLAB_H

#include "../../xbase/slab.h"

#endif
