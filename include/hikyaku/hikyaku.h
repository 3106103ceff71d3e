/* SPDX-License-Identifier: Apache-2.0 */
/* libhikyaku: retry policies for any program, and messages enqueued in the caller's own transaction. This header includes all
 * others. docs/library.md is the guide. */
#ifndef HIKYAKU_HIKYAKU_H
#define HIKYAKU_HIKYAKU_H

#include <hikyaku/alloc.h>
#include <hikyaku/backoff.h>
#include <hikyaku/breaker.h>
#include <hikyaku/error.h>
#include <hikyaku/execute.h>
#include <hikyaku/facts.h>
#include <hikyaku/outbox.h>
#include <hikyaku/outbox_pg.h>
#include <hikyaku/outbox_sqlite.h>
#include <hikyaku/policies.h>
#include <hikyaku/policy.h>
#include <hikyaku/rng.h>
#include <hikyaku/sealer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH" of the library that is running. */
HK_API const char *hk_version(void);

#ifdef __cplusplus
}
#endif
#endif
