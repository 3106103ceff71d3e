/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of sink that stand on a library which not everybody has: each is a shared object of its own, sink-NAME.so, which the relay
 * loads when the first destination of that kind is opened. So the program itself needs none of those libraries.
 *
 * A module is built together with the program and has its own copies of our archives (base, core, loop). What both sides hand to each
 * other are structs, so a module of another build is refused. Once loaded it stays. */
#ifndef HK_SINK_MODULE_H
#define HK_SINK_MODULE_H

#include <stddef.h>

#include <hikyaku/error.h>

#include "sink/sink.h"

/* What a module exports, under the name hk_module. */
struct hk_module {
    const char *version; /* HK_VERSION */
    size_t layout;       /* HK_MODULE_LAYOUT of its own options */
    const void *calls;   /* the table that its kind.c knows */
};

#define HK_MODULE_SYMBOL "hk_module"

/* Differs when a struct that crosses the border has another size. */
#define HK_MODULE_LAYOUT(options)                                                                            \
    (sizeof(options) + 1009 * (sizeof(struct hk_message) +                                                   \
                               1009 * (sizeof(struct hk_delivery) + 1009 * sizeof(struct hk_sink_result))))

/* Looks in $HIKYAKU_MODULES if that is set; else beside the program that runs, then where modules are installed. From any
 * thread. HK_UNSUPPORTED: it is not there, is of another build, or its library is missing. */
enum hk_code hk_module_load(const char *name, size_t layout, const void **out_calls,
                            struct hk_err *err) HK_MUSTCHECK;

#endif
