/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sink/file.h"

enum hk_code hk_sink_file_read(const char *path, struct hk_buf *out, struct hk_err *err)
{
    char part[4096];
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd >= 0 && (n = read(fd, part, sizeof part)) > 0 && hk_buf_add(out, part, (size_t)n) == HK_OK)
        ;
    int error = errno;
    if (fd >= 0)
        (void)close(fd);
    hk_mem_wipe(part, sizeof part);
    if (n < 0)
        return hk_err_set(err, error == ENOENT ? HK_NOTFOUND : HK_DENIED, "it cannot be read: %s",
                          strerror(error));
    enum hk_code rc = hk_buf_status(out);
    if (rc == HK_OK)
        return HK_OK;
    return rc == HK_NOMEM ? hk_err_set(err, HK_NOMEM, "out of memory")
                          : hk_err_set(err, HK_DENIED, "it is too large");
}
