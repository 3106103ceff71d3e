/* SPDX-License-Identifier: Apache-2.0 */
/* If somebody deletes FILE-wal or FILE-shm while we have the database open, the next process to open it makes new ones, and we never see
 * its commits. Our own log is then a file without a name. Copying it into the database, as the last connection does when it closes,
 * would undo the commits of the others. So such a store does nothing more, and copies nothing. */
#include <stdio.h>
#include <sys/stat.h>

#include "store/sqlite/sqlite.h"

static bool look(const struct hk_store *store, const char *suffix, struct hk_sq_side *out)
{
    char path[4200];
    struct stat st;
    const char *file = sqlite3_db_filename(store->db, "main");
    int n = file ? snprintf(path, sizeof path, "%s%s", file, suffix) : -1;
    if (n <= 0 || (size_t)n >= sizeof path || stat(path, &st) != 0)
        return false;
    *out = (struct hk_sq_side){.device = (uint64_t)st.st_dev, .inode = (uint64_t)st.st_ino};
    return true;
}

void hk_sq_note_sides(struct hk_store *store)
{
    if (!store->wal.inode)
        (void)look(store, "-wal", &store->wal);
    if (!store->shm.inode)
        (void)look(store, "-shm", &store->shm);
}

static bool is_another(const struct hk_store *store, const char *suffix, const struct hk_sq_side *known)
{
    struct hk_sq_side now;
    return known->inode &&
           (!look(store, suffix, &now) || now.inode != known->inode || now.device != known->device);
}

bool hk_sq_is_cut_off(struct hk_store *store)
{
    if (!store->cut_off &&
        (is_another(store, "-wal", &store->wal) || is_another(store, "-shm", &store->shm))) {
        store->cut_off = true;
        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        (void)sqlite3_wal_autocheckpoint(store->db, 0);
    }
    return store->cut_off;
}

enum hk_code hk_sq_cut_off(const struct hk_store *store, struct hk_err *err)
{
    return hk_err_set(
        err, HK_IO,
        "%s: it, or its -wal or -shm file, was moved, deleted or replaced while it was open: what others commit "
        "is not seen, and nothing is written back over it; start the relay again",
        store->path);
}
