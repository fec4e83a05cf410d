/*
 * no_profile.h: no profile is taken in models. Included after the source files.
 */
#ifndef SLABYARD_MODELS_NO_PROFILE_H
#define SLABYARD_MODELS_NO_PROFILE_H

_Atomic uint32_t sy_profile_records;
SY_TLS uint32_t sy_profile_counter;

#endif
