/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the dashboard: compressed in the program, where the build made them (tools/web), or in a folder for those who work on them.
 * Everybody who reaches the door may load them: they show nothing by themselves, and ask the API for the rest.
 *
 *   /             the page
 *   /ui/HASH/…    what it loads; HASH changes with any of them, so that a browser may keep them for ever
 *   /ui/session   is not a file (sessions.h) */
#ifndef HK_ADMIN_UI_H
#define HK_ADMIN_UI_H

#include "admin/route.h"

struct hk_ui_file {
    const char *path, *type;
    const char *etag; /* with its quotes */
    bool is_page;
    const unsigned char *gzip;
    size_t len; /* of `gzip` */
};

/* What the build made. None: npm or its packages could not be had. */
extern const struct hk_ui_file hk_ui_files[];
extern const size_t hk_ui_n_files;

struct hk_ui_ask {
    const char *method, *path;
    const char *dir;           /* a folder in place of what is in the program; NULL: none */
    const char *if_none_match; /* NULL: not given */
    bool takes_gzip;
};

/* Is it one of ours, if there is a dashboard at all? */
bool hk_ui_owns(const char *dir, const char *path);
/* `out` is initialized, and always filled. */
void hk_ui_answer(const struct hk_ui_ask *ask, struct hk_admin_reply *out);

#endif
