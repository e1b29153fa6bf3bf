/* SPDX-License-Identifier: Apache-2.0 */
/* What rmem-cc includes in front of each file that GCC compiles: GCC expands these builtins in
 * place, without a hook at what they store. Here they become calls, which the linker leads through
 * the hooks, or plain stores. */
#if !defined(RMEM_INSTRUMENTED_BUILTINS_H) && !defined(__ASSEMBLER__) && !defined(__clang__)
#define RMEM_INSTRUMENTED_BUILTINS_H
#pragma GCC system_header

#ifdef __cplusplus
extern "C" {
#endif

/* A call by another name is no builtin; gcc.specs gives the builtins these names. */
#define RMEM_CALL(type, name, ...) \
    type rmem_##name(__VA_ARGS__) __asm__(#name) __attribute__((__nothrow__));
#define RMEM_CALLS(type, name, checked, ...) \
    RMEM_CALL(type, name, __VA_ARGS__)       \
    RMEM_CALL(type, checked, __VA_ARGS__, __SIZE_TYPE__)

RMEM_CALLS(void*, memcpy, __memcpy_chk, void*, const void*, __SIZE_TYPE__)
RMEM_CALLS(void*, memmove, __memmove_chk, void*, const void*, __SIZE_TYPE__)
RMEM_CALLS(void*, mempcpy, __mempcpy_chk, void*, const void*, __SIZE_TYPE__)
RMEM_CALLS(void*, memset, __memset_chk, void*, int, __SIZE_TYPE__)
RMEM_CALLS(char*, strcpy, __strcpy_chk, char*, const char*)
RMEM_CALLS(char*, stpcpy, __stpcpy_chk, char*, const char*)
RMEM_CALLS(char*, strcat, __strcat_chk, char*, const char*)
RMEM_CALLS(char*, strncpy, __strncpy_chk, char*, const char*, __SIZE_TYPE__)
RMEM_CALLS(char*, stpncpy, __stpncpy_chk, char*, const char*, __SIZE_TYPE__)
RMEM_CALLS(char*, strncat, __strncat_chk, char*, const char*, __SIZE_TYPE__)
RMEM_CALL(void, bzero, void*, __SIZE_TYPE__)
RMEM_CALL(void, bcopy, const void*, void*, __SIZE_TYPE__)
RMEM_CALL(int, sprintf, char*, const char*, ...)
RMEM_CALL(int, snprintf, char*, __SIZE_TYPE__, const char*, ...)
RMEM_CALL(int, __sprintf_chk, char*, int, __SIZE_TYPE__, const char*, ...)
RMEM_CALL(int, __snprintf_chk, char*, __SIZE_TYPE__, int, __SIZE_TYPE__, const char*, ...)

#undef RMEM_CALLS
#undef RMEM_CALL
#ifdef __cplusplus
}
#endif

/* Stores that pass by the caches. */
#define __builtin_ia32_movnti(to, value) ((void)(*(to) = (value)))
#define __builtin_ia32_movnti64(to, value) ((void)(*(to) = (value)))
#define __builtin_ia32_movntps(to, value) ((void)(*(__v4sf*)(to) = (value)))
#define __builtin_ia32_movntpd(to, value) ((void)(*(__v2df*)(to) = (value)))
#define __builtin_ia32_movntdq(to, value) ((void)(*(to) = (value)))
#define __builtin_ia32_movntps256(to, value) ((void)(*(__v8sf*)(to) = (value)))
#define __builtin_ia32_movntpd256(to, value) ((void)(*(__v4df*)(to) = (value)))
#define __builtin_ia32_movntdq256(to, value) ((void)(*(to) = (value)))
#define __builtin_ia32_movntps512(to, value) ((void)(*(__v16sf*)(to) = (value)))
#define __builtin_ia32_movntpd512(to, value) ((void)(*(__v8df*)(to) = (value)))
#define __builtin_ia32_movntdq512(to, value) ((void)(*(to) = (value)))

#endif
