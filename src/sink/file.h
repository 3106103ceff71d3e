/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that name who the relay is: keys and credentials, which somebody else may change at any time. */
#ifndef HK_SINK_FILE_H
#define HK_SINK_FILE_H

#include <hikyaku/error.h>

#include "base/buf.h"

/* Adds all of it to `out`, which bounds it; never waits for a writer. HK_NOTFOUND: there is no such file. HK_DENIED: it cannot be read, or is
 * too large. `err` has the reason without the path. HK_NOMEM. The caller wipes `out`, whatever is returned. */
enum hk_code hk_sink_file_read(const char *path, struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;

#endif
