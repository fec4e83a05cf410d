/*
 * x/base/slab.h: the pools of xslab under the path that its repository has today. Its document says
 * xbase/slab.h, where everything is.
 */
#ifndef SLABYARD_COMPAT_X_BASE_SLAB_H
#define SLABYARD_COMPAT_X_BASE_SLAB_H

#include "../../xbase/slab.h"

#endif
