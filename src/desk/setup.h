/* SPDX-License-Identifier: Apache-2.0 */
/* Operations before a relay runs: on the program, the schema of its database, its configuration file. */
#ifndef HK_DESK_SETUP_H
#define HK_DESK_SETUP_H

#include "config/diag.h"
#include "desk/desk.h"

/* ---- init ---- */

struct hk_init_ask {
    bool print;             /* the SQL that would run; change nothing */
    bool wal;               /* an application's SQLite file may be switched to WAL */
    bool notify, no_notify; /* at most one of them; neither: as it is */
    bool partition_sent;
    bool print_grants; /* the SQL that gives roles their rights; change nothing */
    const char *app_role, *relay_role, *viewer_role; /* NULL: hikyaku_app and so on */
};

struct hk_inited {
    char place[HK_STORE_PLACE_MAX];
    struct hk_store_inited is; /* unless there is `sql` */
    struct hk_str sql;         /* ptr NULL: it has run */
};

/* Creates the schema or brings it up to date. May be asked again and again. */
extern const struct hk_op hk_op_init;

/* ---- config check ---- */

struct hk_config_check_ask {
    const char *file; /* which, or what `text` is called */
    bool is_text;     /* the file was read already: */
    struct hk_str text;
    enum hk_code read; /* HK_OK, or why the text could not be read */
};

#define HK_CONFIG_TEXT_MAX ((size_t)4 << 20)

/* One of them, for programs. */
struct hk_config_note {
    const char *file, *message;
    uint32_t line, col;
};

struct hk_config_checked {
    const char *file;
    bool ok;
    struct hk_diags found;                    /* not to be freed: its texts are in the result's memory */
    struct hk_config_note *errors, *warnings; /* the same, apart */
    size_t n_errors, n_warnings;
    size_t policies, destinations, routes, rules, channels; /* when it is ok */
};

/* What a relay would report about a file when it starts. The desk's own configuration does not matter. */
extern const struct hk_op hk_op_config_check;

/* ---- config schema ---- */

struct hk_config_schema {
    struct hk_str text; /* YAML that loads and changes nothing */
    struct hk_str json; /* JSON Schema */
};

extern const struct hk_op hk_op_config_schema;

/* ---- version ---- */

struct hk_version_told {
    const char *version;
};

extern const struct hk_op hk_op_version;

#endif
