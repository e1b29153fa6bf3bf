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

/* A call by another name is no builtin. */
#define RMEM_CALL(type, name, ...) \
    type rmem_call_##name(__VA_ARGS__) __asm__(#name) __attribute__((__nothrow__));
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
RMEM_CALL(int, vsprintf, char*, const char*, __builtin_va_list)
RMEM_CALL(int, vsnprintf, char*, __SIZE_TYPE__, const char*, __builtin_va_list)
RMEM_CALL(int, __sprintf_chk, char*, int, __SIZE_TYPE__, const char*, ...)
RMEM_CALL(int, __snprintf_chk, char*, __SIZE_TYPE__, int, __SIZE_TYPE__, const char*, ...)
RMEM_CALL(int, __vsprintf_chk, char*, int, __SIZE_TYPE__, const char*, __builtin_va_list)
RMEM_CALL(int, __vsnprintf_chk, char*, __SIZE_TYPE__, int, __SIZE_TYPE__, const char*,
          __builtin_va_list)

#undef RMEM_CALLS
#undef RMEM_CALL
#ifdef __cplusplus
}
#endif

#define __builtin_memcpy rmem_call_memcpy
#define __builtin_memmove rmem_call_memmove
#define __builtin_mempcpy rmem_call_mempcpy
#define __builtin_memset rmem_call_memset
#define __builtin_strcpy rmem_call_strcpy
#define __builtin_stpcpy rmem_call_stpcpy
#define __builtin_strcat rmem_call_strcat
#define __builtin_strncpy rmem_call_strncpy
#define __builtin_stpncpy rmem_call_stpncpy
#define __builtin_strncat rmem_call_strncat
#define __builtin_bzero rmem_call_bzero
#define __builtin_bcopy rmem_call_bcopy
#define __builtin_sprintf rmem_call_sprintf
#define __builtin_snprintf rmem_call_snprintf
#define __builtin_vsprintf rmem_call_vsprintf
#define __builtin_vsnprintf rmem_call_vsnprintf
#define __builtin___memcpy_chk rmem_call___memcpy_chk
#define __builtin___memmove_chk rmem_call___memmove_chk
#define __builtin___mempcpy_chk rmem_call___mempcpy_chk
#define __builtin___memset_chk rmem_call___memset_chk
#define __builtin___strcpy_chk rmem_call___strcpy_chk
#define __builtin___stpcpy_chk rmem_call___stpcpy_chk
#define __builtin___strcat_chk rmem_call___strcat_chk
#define __builtin___strncpy_chk rmem_call___strncpy_chk
#define __builtin___stpncpy_chk rmem_call___stpncpy_chk
#define __builtin___strncat_chk rmem_call___strncat_chk
#define __builtin___sprintf_chk rmem_call___sprintf_chk
#define __builtin___snprintf_chk rmem_call___snprintf_chk
#define __builtin___vsprintf_chk rmem_call___vsprintf_chk
#define __builtin___vsnprintf_chk rmem_call___vsnprintf_chk

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
