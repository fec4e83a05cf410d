/*
 * together.h: one program with all the headers in compat/, each in a file that is a user's own and
 * includes no other: four of them are called slab.h, and names are used twice among them. Each
 * function returns 0, if all went well.
 */
#ifndef SLABYARD_TESTS_COMPAT_TOGETHER_H
#define SLABYARD_TESTS_COMPAT_TOGETHER_H

#ifdef __cplusplus
extern "C" {
#endif

int with_xslab(void);
int with_magazine_slab(void);
int with_magazine_slab_1_2(void);
int with_userland_slab(void);
int with_zns_slab(void);

int with_xslab_in_cpp(void);
int with_magazine_slab_in_cpp(void);
int with_magazine_slab_1_2_in_cpp(void); /* after with_magazine_slab_1_2 */
int with_userland_slab_in_cpp(void);     /* a cache is left: with_userland_slab destroys it */
int with_zns_slab_in_cpp(void);

#ifdef __cplusplus
}
#endif

#endif
