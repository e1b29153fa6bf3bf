/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "store_shapes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define AT(type, i) (((type*)(void*)slot)[i])

/* ---- Widths */
SHAPE(scalars) {
    AT(unsigned char, 0) = (unsigned char)one;
    AT(short, 4) = (short)one;
    AT(int, 8) = one;
    AT(long, 8) = one;
    AT(float, 32) = (float)one;
    AT(double, 20) = one;
    AT(bool, 200) = one;
    AT(void*, 30) = slot;
}
SHAPE(int128) {
    AT(__int128, 1) = one;
    AT(__int128, 5) -= one;
}
SHAPE(long_double) {
    AT(long double, 0) = one;
    AT(long double, 4) = 2.5L * one;
}
SHAPE(complex_numbers) {
    AT(_Complex float, 0) = one + 2.0if;
    AT(_Complex double, 4) = one + 3.0i;
    AT(_Complex long double, 8) = one + 4.0i;
}
SHAPE(volatile_words) {
    AT(volatile int, 0) = one;
    AT(volatile int, 0) = 2;
    AT(volatile char, 77) = 3;
    AT(volatile double, 20) = one;
    AT(volatile long double, 20) = one;
}
SHAPE(increments) {
    AT(int, 0)++;
    AT(long, 4) += 7;
    AT(short, 70) |= 3;
    AT(char, 200)--;
    AT(float, 90) += 1;
}
typedef int unaligned __attribute__((aligned(1), may_alias));
SHAPE(unaligned_words) {
    *(unaligned*)(slot + 1) = one;
    *(unaligned*)(slot + 63) = one;
    *(unaligned*)(slot + 493) = one;
}

#define VECTOR(n, type)                                                         \
    typedef type vector##n##_##type __attribute__((vector_size(n), may_alias)); \
    SHAPE(vector_of_##n##_##type) {                                             \
        vector##n##_##type v = {0};                                             \
        v += (type)one;                                                         \
        *(vector##n##_##type*)slot = v;                                         \
        memset(&v, one, sizeof v);                                              \
        *(vector##n##_##type*)(slot + 512) = v;                                 \
    }
VECTOR(4, char)
VECTOR(8, int)
VECTOR(16, float)
VECTOR(16, char)
VECTOR(32, float)
VECTOR(32, char)
VECTOR(64, double)
VECTOR(64, int)

/* ---- Loops that are vectorised */
SHAPE(loop_of_bytes) {
    for (int i = 0; i < 300 * one; ++i) slot[i] = (unsigned char)(i | 1);
}
SHAPE(loop_of_words) {
    for (int i = 0; i < 300 * one; ++i) AT(int, i) = i + one;
}
SHAPE(loop_of_doubles) {
    const int* from = (const int*)(void*)bytes;
    for (int i = 0; i < 64; ++i) AT(double, i) = from[i];
}
SHAPE(loop_of_pairs) {
    for (int i = 0; i < 64; ++i) {
        AT(int, 2 * i) = i + one;
        AT(int, 2 * i + 1) = one - i;
    }
}
SHAPE(loop_that_fills) {
    for (int i = 0; i < 200; ++i) slot[i] = 5;
    for (int i = 64; i < 128; ++i) AT(long, i) = 0x0101010101010101;
}
SHAPE(loop_that_copies) {
    for (int i = 0; i < 200; ++i) slot[i] = bytes[i];
}
SHAPE(neighbours) {
    AT(float, 0) = 1.5f * (float)one;
    AT(float, 1) = 2 * AT(float, 0);
    AT(float, 2) = 3 * AT(float, 0);
    AT(float, 3) = 4 * AT(float, 0);
    AT(float, 4) = 5 * AT(float, 0);
    AT(float, 5) = 6;
    AT(float, 6) = 7;
    AT(float, 7) = 8;
}
SHAPE(rows) {
    long(*row)[one * 4] = (void*)slot;
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4 * one; ++c) row[r][c] = r + c + 1;
}
SHAPE(pointers_on_the_stack) {
    int n = 8 * one;
    int* to[n];
    for (int i = 0; i < n; ++i) to[i] = &AT(int, 3 * i);
    for (int i = 0; i < n; ++i) *to[i] = i + 1;
}

/* ---- Structures */
#define STRUCT(n)                                                        \
    struct of_##n {                                                      \
        unsigned char b[n];                                              \
    };                                                                   \
    SHAPE(struct_of_##n) {                                               \
        struct of_##n s;                                                 \
        memcpy(&s, bytes, n);                                            \
        *(struct of_##n*)(void*)slot = s;                                \
        ((struct of_##n*)(void*)slot)[1] = *(struct of_##n*)(void*)slot; \
        *(struct of_##n*)(void*)(slot + 1024) = (struct of_##n){{1}};    \
    }
STRUCT(1)
STRUCT(3)
STRUCT(8)
STRUCT(12)
STRUCT(16)
STRUCT(24)
STRUCT(33)
STRUCT(48)
STRUCT(64)
STRUCT(500) struct mixed {
    int i;
    double d;
    char c;
    long double l;
};
SHAPE(struct_of_members) {
    *(struct mixed*)(void*)slot = (struct mixed){one, 2, 3, 4};
    ((struct mixed*)(void*)slot)[1].d = one;
    struct mixed* m = &((struct mixed*)(void*)slot)[2];
    m->i = m->c = (char)one;
}
struct bits {
    unsigned a : 5, b : 11, c : 1;
    long d : 37;
    int e : 3;
};
struct __attribute__((packed)) packed_bits {
    unsigned a : 5, b : 19;
    char c;
    short d;
    int e : 24;
    long f;
};
SHAPE(bit_fields) {
    struct bits* b = (void*)slot;
    b->a = (unsigned)one;
    b->b = 77;
    b->c = 1;
    b->d = -one;
    b->e = one;
    b->b++;
}
SHAPE(packed_bit_fields) {
    struct packed_bits* b = (void*)slot;
    b->a = (unsigned)one;
    b->b = 77;
    b->c = 1;
    b->d = 5;
    b->e = -one;
    b->f = one;
}
union parts {
    int i;
    float f;
    char c[8];
};
SHAPE(unions) {
    ((union parts*)(void*)slot)->f = 2;
    ((union parts*)(void*)slot)[2] = (union parts){.c = "seven"};
}
#ifdef __clang__ /* rmem-cc(1): GCC has no hook here */
#define RETURNS(n)                                           \
    __attribute__((noinline)) struct of_##n make_##n(void) { \
        struct of_##n s;                                     \
        memcpy(&s, bytes, n);                                \
        s.b[0] = (unsigned char)one;                         \
        return s;                                            \
    }                                                        \
    SHAPE(returned_##n) {                                    \
        *(struct of_##n*)(void*)slot = make_##n();           \
    }
RETURNS(3)
RETURNS(8)
RETURNS(12)
RETURNS(16)
RETURNS(48)
RETURNS(500)
#endif
static inline void set_inline(unsigned char* slot) {
    AT(int, 0) = one;
    slot[99] = 9;
}
SHAPE(inline_function) {
    set_inline(slot);
}
__attribute__((noinline)) static void set_by_leaf(int* to) {
    *to = 7;
}
SHAPE(function) {
    set_by_leaf(&AT(int, 9));
}

/* ---- Atomics */
#define ATOMIC(n, type)                                                \
    SHAPE(atomic_##n) {                                                \
        _Atomic type* a = (void*)slot;                                 \
        atomic_store(&a[0], (type)one);                                \
        atomic_store_explicit(&a[1], (type)one, memory_order_relaxed); \
        atomic_fetch_add(&a[2], (type)3);                              \
        atomic_exchange(&a[3], (type)4);                               \
        type expected = 0;                                             \
        atomic_compare_exchange_strong(&a[4], &expected, (type)5);     \
        a[5] |= (type)one;                                             \
        __sync_fetch_and_add((type*)&a[6], (type)6);                   \
        __sync_lock_test_and_set((type*)&a[7], (type)9);               \
        __atomic_store_n((type*)&a[8], (type)2, __ATOMIC_RELEASE);     \
    }
ATOMIC(1, unsigned char) ATOMIC(2, short) ATOMIC(4, int) ATOMIC(8, long) SHAPE(atomic_16) {
    __int128* a = (void*)slot;
    __atomic_store_n(&a[0], one, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&a[1], one, __ATOMIC_SEQ_CST);
    __atomic_exchange_n(&a[2], one, __ATOMIC_SEQ_CST);
}
SHAPE(atomic_struct) {
    _Atomic struct of_24* a = (void*)slot;
    struct of_24 s = {{1, 2, 3}};
    atomic_store(a, s);
}
SHAPE(atomic_flags) {
    atomic_flag_test_and_set((atomic_flag*)(void*)slot);
}

/* ---- Copies and fills of every size, as calls and as builtins */
#define SIZES(DO) \
    DO(1)         \
    DO(2)         \
    DO(3)         \
    DO(4)         \
    DO(5) DO(7) DO(8) DO(12) DO(15) DO(16) DO(17) DO(24) DO(31) DO(32) DO(33) DO(48) DO(63) DO(64)
#define COPY(n)             \
    memcpy(slot, bytes, n); \
    slot += 100;
SHAPE(memcpys){SIZES(COPY)}
#undef COPY
#define COPY(n)                       \
    __builtin_memcpy(slot, bytes, n); \
    slot += 100;
SHAPE(builtin_memcpys){SIZES(COPY)}
#undef COPY
#define COPY(n)              \
    memmove(slot, bytes, n); \
    slot += 100;
SHAPE(memmoves){SIZES(COPY)}
#undef COPY
#define COPY(n)                        \
    __builtin_memmove(slot, bytes, n); \
    slot += 100;
SHAPE(builtin_memmoves){SIZES(COPY)}
#undef COPY
#define COPY(n)         \
    memset(slot, 7, n); \
    slot += 100;
SHAPE(memsets){SIZES(COPY)}
#undef COPY
#define COPY(n)                     \
    __builtin_memset(slot, one, n); \
    slot += 100;
SHAPE(builtin_memsets){SIZES(COPY)} SHAPE(overlap) {
    memcpy(slot, bytes, 100);
    memmove(slot + 3, slot, 90);
    memmove(slot, slot + 9, 50);
    __builtin_memmove(slot + 200, slot, 300);
}
SHAPE(checked_builtins) {
    __builtin___memcpy_chk(slot, bytes, 48, 2048);
    __builtin___memset_chk(slot + 100, 3, 40, 1948);
    __builtin___memmove_chk(slot + 200, bytes, 31, (size_t)-1);
    __builtin___strcpy_chk((char*)slot + 300, "eighteen", 100);
}
SHAPE(texts) {
    char* s = (char*)slot;
    const char* eight = (char*)bytes + 247;
    bytes[255] = 0;
    strcpy(s, "literal");
    strcpy(s + 100, eight);
    strcat(s, "more");
    strcat(s + 100, eight);
    strncpy(s + 200, eight, 20);
    strncat(s + 100, eight, 3);
    strncat(s + 150, "hallo", 9);
    bytes[255] = 1;
}
SHAPE(text_ends) {
    char* s = (char*)slot;
    *stpcpy(s, "literal") = 'x';
    stpncpy(s + 100, "many", 30);
    mempcpy(s + 200, bytes, 40);
    memccpy(s + 300, "abcdef", 'd', 6);
    __builtin_stpcpy(s + 400, "five");
    __builtin_strcpy(s + 500, "sixsix");
}
SHAPE(zeros) {
    memset(slot, 1, 200);
    bzero(slot, 20);
    explicit_bzero(slot + 50, 20);
    bcopy(bytes, slot + 100, 30);
    __builtin_bzero(slot + 150, 10);
}
SHAPE(wide) {
    wmemset((wchar_t*)(void*)slot, 'w', 20);
    wmemcpy((wchar_t*)(void*)(slot + 400), L"wide", 4);
}
#ifdef __x86_64__
SHAPE(intrinsics) {
    __m128i v = _mm_set1_epi32(one);
    _mm_storeu_si128((__m128i*)(void*)slot, v);
    _mm_store_si128((__m128i*)(void*)(slot + 64), v);
    _mm_stream_si128((__m128i*)(void*)(slot + 128), v);
    _mm_storel_epi64((__m128i*)(void*)(slot + 192), v);
    _mm_stream_si32((int*)(void*)(slot + 256), one);
    _mm_stream_pd((double*)(void*)(slot + 320), _mm_set1_pd(one));
    _mm_store_ss((float*)(void*)(slot + 400), _mm_set1_ps(2));
}
#ifdef __AVX__
SHAPE(avx) {
    _mm256_storeu_ps((float*)(void*)slot, _mm256_set1_ps((float)one));
    _mm256_store_si256((__m256i*)(void*)(slot + 64), _mm256_set1_epi32(one));
    _mm256_stream_ps((float*)(void*)(slot + 128), _mm256_set1_ps(1));
}
#endif
#ifdef __AVX512F__
SHAPE(avx512) {
    _mm512_storeu_ps(slot, _mm512_set1_ps((float)one));
    _mm512_stream_pd((double*)(void*)(slot + 128), _mm512_set1_pd(one));
}
#endif
#endif

/* ---- Calls that fill */
SHAPE(clocks) {
    clock_gettime(CLOCK_REALTIME, (void*)slot);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, (void*)(slot + 100));
    gettimeofday((void*)(slot + 200), NULL);
    time((void*)(slot + 300));
    clock_getres(CLOCK_MONOTONIC, (void*)(slot + 400));
}
SHAPE(calendar) {
    time_t now = 1000000;
    localtime_r(&now, (void*)slot);
    gmtime_r(&now, (void*)(slot + 200));
    strftime((char*)slot + 300, 50, "%Y", gmtime(&now));
    ctime_r(&now, (char*)slot + 400);
    asctime_r(gmtime(&now), (char*)slot + 500);
    struct tm* t = (void*)(slot + 600);
    t->tm_mday = 40;
    mktime(t);
}
SHAPE(numbers) {
    modf(2.5 * one, &AT(double, 0));
    modff(2.5f * (float)one, &AT(float, 20));
    frexp(8.0 * one, &AT(int, 30));
    remquo(7.0 * one, 2, &AT(int, 40));
    sincos(one, &AT(double, 50), &AT(double, 51));
    modfl(2.5L * one, &AT(long double, 50));
}
SHAPE(printing) {
    char* s = (char*)slot;
    sprintf(s, "literal");
    sprintf(s + 100, "%d of %s", one, "two");
    snprintf(s + 200, 5, "%d of many", one);
    snprintf(s + 300, 50, "%s", "three");
    sprintf(s + 400, "%s", "four");
    snprintf(s + 500, 9, "five");
}
static void print(char* to, const char* format, ...) {
    va_list list;
    va_start(list, format);
    vsprintf(to, format, list);
    va_end(list);
    va_start(list, format);
    vsnprintf(to + 100, 9, format, list);
    va_end(list);
}
SHAPE(printing_lists) {
    print((char*)slot, "%d %s", one, "listed things");
}
SHAPE(scanning) {
    sscanf("12 3.5 4.5 word x 7 99 0x1f 5 rest", "%d %f %lf %s %c %hd %ld %x %*d %[a-z]%n",
           &AT(int, 0), &AT(float, 5), &AT(double, 10), slot + 100, slot + 200, &AT(short, 150),
           &AT(long, 50), &AT(unsigned, 120), slot + 600, &AT(int, 200));
}
SHAPE(files) {
    FILE* f = fopen("/proc/self/status", "r");
    (void)!fgets((char*)slot, 100, f);
    (void)!fread(slot + 200, 1, 50, f);
    (void)!fscanf(f, "%s", (char*)slot + 400);
    fclose(f);
}
SHAPE(reads) {
    int fd = open("/proc/self/status", O_RDONLY);
    (void)!read(fd, slot, 40);
    (void)!pread(fd, slot + 100, 30, 2);
    struct iovec v[2] = {{slot + 200, 5}, {slot + 300, 60}};
    (void)!readv(fd, v, 2);
    close(fd);
}
SHAPE(receives) {
    int s[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
    for (int i = 0; i < 3; ++i) (void)!write(s[0], bytes, 60);
    (void)!recv(s[1], slot, 100, 0);
    (void)!recvfrom(s[1], slot + 200, 40, 0, NULL, NULL);
    struct iovec v = {slot + 400, 70};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    (void)!recvmsg(s[1], &m, 0);
    close(s[0]);
    close(s[1]);
}
SHAPE(systems) {
    uname((void*)slot);
    struct stat* st = (void*)(slot + 500);
    stat("/", st);
    getrusage(RUSAGE_SELF, (void*)(slot + 800));
    times((void*)(slot + 1000));
    (void)!getrandom(slot + 1100, 16, 0);
}
SHAPE(names) {
    (void)!getcwd((char*)slot, 500);
    (void)!readlink("/proc/self/exe", (char*)slot + 600, 300);
    gethostname((char*)slot + 1000, 100);
    inet_ntop(AF_INET, bytes, (char*)slot + 1100, 40);
    inet_pton(AF_INET, "1.2.3.4", slot + 1200);
    (void)!realpath("/", (char*)slot + 1300);
}
static int compare(const void* a, const void* b) {
    return *(const int*)a - *(const int*)b;
}
SHAPE(sorting) {
    for (int i = 0; i < 50; ++i) AT(int, i) = (i * 37) % 50;
    qsort(slot, 50, 4, compare);
}
