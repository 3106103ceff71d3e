/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the whole project. Each has a code for the program, a class that says what to do, and a message for people. */
#ifndef HIKYAKU_ERROR_H
#define HIKYAKU_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HK_API                  __attribute__((visibility("default")))
#define HK_MUSTCHECK            __attribute__((warn_unused_result))
#define HK_PRINTF(fmt, varargs) __attribute__((format(printf, fmt, varargs)))
#else
#define HK_API
#define HK_MUSTCHECK
#define HK_PRINTF(fmt, varargs)
#endif

enum hk_code {
    HK_OK = 0,
    HK_NOMEM,       /* an allocation failed */
    HK_INVALID,     /* malformed input or argument */
    HK_RANGE,       /* well-formed, but outside what is allowed */
    HK_TOOBIG,      /* a stated maximum would be exceeded */
    HK_NOTFOUND,    /* no such thing */
    HK_EXISTS,      /* there is one already */
    HK_CONFLICT,    /* somebody else changed it first */
    HK_BUSY,        /* in use now; later it may work */
    HK_TIMEOUT,     /* a deadline passed */
    HK_UNAVAILABLE, /* the other side cannot be reached or refuses for now */
    HK_IO,          /* the operating system refused a read or a write */
    HK_UNSUPPORTED, /* this build or this version cannot do it */
    HK_GAVE_UP,     /* retrying ended without success */
    HK_CANCELLED,   /* the caller asked to stop */
    HK_DENIED,      /* the caller's rights do not allow it */
    HK_NCODES
};

/* What a caller can do about an error, whatever its code. */
enum hk_errclass {
    HK_ERRCLASS_NONE = 0,  /* no error */
    HK_ERRCLASS_INPUT,     /* change what you passed */
    HK_ERRCLASS_TEMPORARY, /* the same call may work later */
    HK_ERRCLASS_RESOURCE,  /* memory, disk, descriptors: free some */
    HK_ERRCLASS_PERMANENT  /* the same call will not work */
};

#define HK_ERR_MESSAGE_MAX 512

/* Storage of the caller. A function that fails fills it; a function that succeeds does not change it. */
struct hk_err {
    enum hk_code code;
    enum hk_errclass errclass;
    char message[HK_ERR_MESSAGE_MAX];
};

/* A stable name such as "TIMEOUT"; "UNKNOWN" for a value out of range. Static storage. */
HK_API const char *hk_code_name(enum hk_code code);
HK_API enum hk_errclass hk_code_class(enum hk_code code);

/* Fills `err` (may be NULL) with a printf-like message, cut at HK_ERR_MESSAGE_MAX - 1 bytes.
 * Returns `code`, so that a failing path reads `return hk_err_set(err, HK_INVALID, "…")`. */
HK_API enum hk_code hk_err_set(struct hk_err *err, enum hk_code code, const char *fmt, ...) HK_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* it does not look into other files, and would take the code for any other */
#define hk_err_set(err, code, ...) ((void)(hk_err_set)(err, code, __VA_ARGS__), (code))
#endif

#ifdef __cplusplus
}
#endif
#endif
