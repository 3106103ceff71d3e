/* SPDX-License-Identifier: Apache-2.0 */
/* Everybody on the machine may read the arguments of a process. A password in one of them is taken out of sight as early as
 * possible; the program works on a copy. It was there for a moment all the same: the environment, or a file, is better. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"

static void cover(char *from, const char *end)
{
    while (from < end)
        *from++ = '*';
}

/* scheme://user:HERE@host; returns whether there was one. */
static bool cover_user(char *arg, bool really)
{
    char *host = strstr(arg, "://");
    if (!host)
        return false;
    host += 3;
    size_t len = strcspn(host, "/?#");
    char *at = NULL;
    for (char *p = host; p < host + len; p++)
        at = *p == '@' ? p : at;
    if (!at) /* a bare slash in a password ends the authority early: then up to the last one of all */
        at = strrchr(host, '@');
    char *colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (colon && really)
        cover(colon + 1, at);
    return colon != NULL;
}

/* ?password=HERE& */
static bool cover_parameters(char *arg, bool really)
{
    bool any = false;
    for (char *p = strstr(arg, "password="); p; p = strstr(p, "password=")) {
        p += strlen("password=");
        char *end = p + strcspn(p, "& ");
        any = true;
        if (really)
            cover(p, end);
        p = end;
    }
    return any;
}

void hk_args_hide(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool user = cover_user(argv[i], false), parameters = cover_parameters(argv[i], false);
        char *copy = user || parameters ? hk_mem_strdup(argv[i]) : NULL;
        if (!copy)
            continue;
        (void)cover_user(argv[i], true);
        (void)cover_parameters(argv[i], true);
        argv[i] = copy; /* for as long as the process lives */
    }
}
