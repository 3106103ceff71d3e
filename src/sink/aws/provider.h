/* SPDX-License-Identifier: Apache-2.0 */
/* The access keys of one client: those that are here (credentials.h), or temporary ones that must be asked for.
 *
 * - However many messages wait, one question is under way.
 * - Temporary keys are renewed before they end: in their last quarter, at most 5 minutes before. Until the new ones are there the old ones
 *   are used. Without messages nobody asks.
 * - After a failure nobody asks again for a second, and old keys are used until they end. */
#ifndef HK_SINK_AWS_PROVIDER_H
#define HK_SINK_AWS_PROVIDER_H

#include "base/proxy.h"
#include "loop/loop.h"
#include "sink/aws/credentials.h"

/* All is copied. */
struct hk_aws_provider_options {
    const char *name; /* the destination's */
    const char *region;
    struct hk_aws_source source;
    const char *ca_file; /* for STS */
    const struct hk_cidr *allow;
    size_t n_allow;
    const struct hk_proxy *proxy; /* for STS; the others are asked directly */
    hk_loop_fn *wake;             /* from the loop, after an answer of BUSY: it is worth asking again */
    void *arg;
};

struct hk_aws_provider;

/* HK_NOMEM. Connects to nothing and reads nothing yet. */
enum hk_code hk_aws_provider_new(struct hk_loop *loop, const struct hk_aws_provider_options *options,
                                 struct hk_aws_provider **out_provider, struct hk_err *err) HK_MUSTCHECK;
void hk_aws_provider_free(struct hk_aws_provider *provider); /* accepts NULL; `wake` never runs again */

/* HK_OK: `*out` is valid until the next call. HK_BUSY: they are being asked for. Else there are none, for the reason in `err`, which never
 * shows a secret; `*out_fault` says whose fault that is: AUTH, TOKEN, TOKEN_REFUSED, or as an HTTP request fails. */
enum hk_code hk_aws_provider_get(struct hk_aws_provider *provider, const struct hk_aws_credentials **out,
                                 enum hk_fault *out_fault, struct hk_err *err) HK_MUSTCHECK;
/* A service has refused the present keys. */
void hk_aws_provider_doubt(struct hk_aws_provider *provider);

#endif
