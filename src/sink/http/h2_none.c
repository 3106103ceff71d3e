/* SPDX-License-Identifier: Apache-2.0 */
/* In place of our own HTTP/2, in builds without libnghttp2. */
#include "base/mem.h"
#include "sink/http/impl.h"

static void destroy(struct hk_http_sink *self)
{
    hk_http_fini(self);
    hk_mem_free(self);
}

static const struct hk_http_wire wire = {.destroy = destroy};

struct hk_http_sink *hk_h2_new(void)
{
    struct hk_http_sink *self = hk_mem_zalloc(1, sizeof *self);
    if (self)
        self->wire = &wire;
    return self;
}

enum hk_code hk_h2_open(struct hk_http_sink *base, const struct hk_h2_target *target, struct hk_err *err)
{
    (void)base, (void)target;
    return hk_err_set(err, HK_UNSUPPORTED, "this build has no HTTP/2 of its own (libnghttp2)");
}
