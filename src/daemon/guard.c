/* SPDX-License-Identifier: Apache-2.0 */
/* Identity and core dumps. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/show.h"
#include "base/str.h"
#include "daemon/guard.h"

#define NAME_MAX_BYTES 64

bool hk_guard_is_root(void)
{
    return geteuid() == 0;
}

static enum hk_code no_such(const char *what, struct hk_str name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_INVALID, "--user: there is no %s %s", what, hk_show(name, shown));
}

/* `*out_gid` stays as it is when no group is named. */
static enum hk_code find_group(struct hk_str name, gid_t *out_gid, struct hk_err *err)
{
    char text[NAME_MAX_BYTES];
    if (!name.ptr)
        return HK_OK;
    const struct group *group = hk_str_copy(text, sizeof text, name) ? getgrnam(text) : NULL;
    if (!group)
        return no_such("group", name, err);
    *out_gid = group->gr_gid;
    return HK_OK;
}

static enum hk_code change_to(const char *user, uid_t uid, gid_t gid, struct hk_err *err)
{
    if (initgroups(user, gid) != 0 || setgid(gid) != 0 || setuid(uid) != 0)
        return hk_err_set(err, HK_INVALID, "--user: cannot become that user: %s", strerror(errno));
    if (uid != 0 && (setuid(0) == 0 || geteuid() != uid || getegid() != gid))
        return hk_err_set(err, HK_INVALID, "--user: the process could get root's rights back");
    return HK_OK;
}

enum hk_code hk_guard_become(const char *who, struct hk_err *err)
{
    char user[NAME_MAX_BYTES];
    struct hk_str group = hk_str_of(who);
    struct hk_str name = hk_str_cut(&group, ':');
    const struct passwd *entry = hk_str_copy(user, sizeof user, name) ? getpwnam(user) : NULL;
    if (!entry)
        return no_such("user", name, err);
    uid_t uid = entry->pw_uid;
    gid_t gid = entry->pw_gid;
    enum hk_code rc = find_group(group, &gid, err);
    if (rc != HK_OK)
        return rc;
    if (geteuid() == 0)
        return change_to(user, uid, gid, err);
    if (geteuid() == uid && getegid() == gid)
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "--user: only root can become another user");
}

enum hk_code hk_guard_forbid_dumps(struct hk_err *err)
{
    struct rlimit none = {0, 0};
    /* the limit is not looked at where dumps are piped to a program, the flag is; nor are /proc/PID/mem and environ open */
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return hk_err_set(err, HK_UNSUPPORTED, "core dumps cannot be turned off: %s", strerror(errno));
    return HK_OK;
}
