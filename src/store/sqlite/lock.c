/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the death of a relay. A lease shows it after half a minute, the kernel at once: the owner of a lane holds a lock on
 * FILE-relay, next to the database, and the kernel frees the lock when the process is gone, however it ended.
 *
 * A lane that was taken under the lock says so: its tag names this boot of this host and that very file. Whoever gets hold
 * of the lock, and finds a lane with the same tag, knows that its owner is dead. In every other case (locks that do not
 * work here, another host, the file was replaced, the owner is only stopped and still has the lock) the lease decides, as
 * it would without. If a lock should ever lie, a living relay is taken over: the fence holds, and it finds out.
 *
 * flock(2), not fcntl(2): the latter are the process's, and lost when anybody in it closes the file. The file is never
 * removed: two processes could then hold locks on two files of one name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/sqlite/sqlite.h"

#define SUFFIX "-relay"

/* As many bytes as there are; false: none. */
static bool read_boot(char *out, size_t room)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, room - 1);
    (void)close(fd);
    if (n <= 0)
        return false;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return out[0] != '\0';
}

/* A regular file that we may write to, made if need be with the database's own permissions. -1: no lock, then. */
static int open_beside(const char *database)
{
    struct stat st;
    size_t room = strlen(database) + sizeof SUFFIX;
    char *path = hk_mem_alloc(room);
    if (!path || stat(database, &st) != 0) {
        hk_mem_free(path);
        return -1;
    }
    (void)snprintf(path, room, "%s" SUFFIX, database);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, st.st_mode & 0666);
    hk_mem_free(path);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static int lock_now(int fd)
{
    int rc;
    do
        rc = flock(fd, LOCK_EX | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    return rc;
}

void hk_sq_lock(struct hk_store *store)
{
    char boot[64];
    struct stat st;
    const char *database = sqlite3_db_filename(store->db, "main"); /* whole, and links are followed */
    if (store->options.lease_only || store->lock_tag[0] || !database || !read_boot(boot, sizeof boot))
        return;
    int fd = open_beside(database);
    if (fd < 0)
        return;
    store->lock_held = false;
    if (fstat(fd, &st) != 0 || lock_now(fd) != 0) {
        store->lock_held = errno == EWOULDBLOCK;
        (void)close(fd);
        return;
    }
    store->lock_fd = fd;
    (void)snprintf(store->lock_tag, sizeof store->lock_tag, "%s %llu:%llu", boot,
                   (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

void hk_sq_unlock(struct hk_store *store)
{
    if (store->lock_tag[0])
        (void)close(store->lock_fd);
    store->lock_tag[0] = '\0';
}
