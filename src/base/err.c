/* SPDX-License-Identifier: Apache-2.0 */
/* Names and classes of the error codes, and the one function that fills an error. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include <hikyaku/error.h>

static const struct {
    const char *name;
    enum hk_errclass errclass;
} codes[HK_NCODES] = {
    [HK_OK] = {"OK", HK_ERRCLASS_NONE},
    [HK_NOMEM] = {"NOMEM", HK_ERRCLASS_RESOURCE},
    [HK_INVALID] = {"INVALID", HK_ERRCLASS_INPUT},
    [HK_RANGE] = {"RANGE", HK_ERRCLASS_INPUT},
    [HK_TOOBIG] = {"TOOBIG", HK_ERRCLASS_INPUT},
    [HK_NOTFOUND] = {"NOTFOUND", HK_ERRCLASS_INPUT},
    [HK_EXISTS] = {"EXISTS", HK_ERRCLASS_INPUT},
    [HK_CONFLICT] = {"CONFLICT", HK_ERRCLASS_TEMPORARY},
    [HK_BUSY] = {"BUSY", HK_ERRCLASS_TEMPORARY},
    [HK_TIMEOUT] = {"TIMEOUT", HK_ERRCLASS_TEMPORARY},
    [HK_UNAVAILABLE] = {"UNAVAILABLE", HK_ERRCLASS_TEMPORARY},
    [HK_IO] = {"IO", HK_ERRCLASS_RESOURCE},
    [HK_UNSUPPORTED] = {"UNSUPPORTED", HK_ERRCLASS_PERMANENT},
    [HK_GAVE_UP] = {"GAVE_UP", HK_ERRCLASS_PERMANENT},
    [HK_CANCELLED] = {"CANCELLED", HK_ERRCLASS_PERMANENT},
    [HK_DENIED] = {"DENIED", HK_ERRCLASS_PERMANENT},
};

const char *hk_code_name(enum hk_code code)
{
    return (unsigned)code < HK_NCODES ? codes[code].name : "UNKNOWN";
}

enum hk_errclass hk_code_class(enum hk_code code)
{
    return (unsigned)code < HK_NCODES ? codes[code].errclass : HK_ERRCLASS_PERMANENT;
}

enum hk_code hk_err_set(struct hk_err *err, enum hk_code code, const char *fmt, ...)
{
    if (!err)
        return code;
    err->code = code;
    err->errclass = hk_code_class(code);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    if (n < 0)
        err->message[0] = '\0';
    return code;
}
