/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that are kept in the store: what the desk writes (admin.h) and relays read (store.h). The store knows nothing of
 * what a definition says: it is text. Each change gives all of them together another version, which polls tell. */
#ifndef HK_STORE_DEFINITION_H
#define HK_STORE_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#define HK_DEFINITIONS_MAX       20000 /* more are not read */
#define HK_DEFINITION_BYTES      (64 * 1024)
#define HK_DEFINITIONS_NAMES_MAX ((size_t)16 << 20) /* bytes of the names of one question */
#define HK_DEFINITION_ANY        (-1)               /* whatever version it has, or none */
#define HK_DEFINITION_MISSING    0                  /* it must not be there */

struct hk_definition {
    struct hk_str name;
    int64_t version; /* from 1, one more with each change */
    int64_t seq;     /* the version of all when it was last changed */
    struct hk_str text;
    int64_t created_ms, changed_ms;
    struct hk_str created_by, changed_by, reason; /* only from admin.h */
};

struct hk_definitions {
    int64_t version;             /* of all; 0 = there never was one */
    struct hk_definition *items; /* by name */
    size_t n;
    bool more; /* than HK_DEFINITIONS_MAX */
};

struct hk_define {
    const char *name;
    struct hk_str text;
    int64_t version; /* that it must have, or one of the two above */
    uint32_t max;    /* no more than so many are kept; 0 = no bound */
    const char *actor, *reason;
};

struct hk_undefine {
    const char *name;
    int64_t version; /* that it must have, or HK_DEFINITION_ANY */
    bool force;      /* even if messages wait for it */
    const char *actor, *reason;
};

struct hk_defined {
    int64_t version; /* of the destination: as it is now, or as it was when it was removed */
    int64_t now_ms;
    bool made; /* it was not there before */
};

#endif
