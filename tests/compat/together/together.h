/*
 * together.h: one program that uses all headers in compat/. Each source file includes the headers
 * of one earlier system only, because four of them are called slab.h, and some of their functions
 * have the same names. Each function returns 0 on success.
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
int with_userland_slab_in_cpp(void);     /* leaves a cache, which with_userland_slab destroys */
int with_zns_slab_in_cpp(void);

#ifdef __cplusplus
}
#endif

#endif
