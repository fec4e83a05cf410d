/*
 * registers.h: the number of registers of 64-bit Arm that reports show. Their names are the same on
 * all systems.
 */
#ifndef SY_OS_REGISTERS_H
#define SY_OS_REGISTERS_H

enum { SY_ARM_REGISTERS = 31 };

#endif
