/* SPDX-License-Identifier: Apache-2.0 */
/* Seals payloads before they are written, so that the database never holds them in the clear (docs/personal-data.md). The relay has the
 * same key in its configuration (`seal.keys`), and opens a payload when it sends it. */
#ifndef HIKYAKU_SEALER_H
#define HIKYAKU_SEALER_H

#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/outbox.h>
#include <hikyaku/outbox_pg.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_sealer; /* one key; may be used by several threads at once */

/* `store` and `key_id` as the relay's configuration has them (`seal.store`, `seal.keys[].id`); `key` is the key's 32 bytes, not its
 * base64. All of it is copied, the key into memory that is locked and left out of core dumps. HK_INVALID, HK_NOMEM. */
HK_API enum hk_code hk_sealer_new(const char *store, const char *key_id, const void *key, size_t key_len,
                                  struct hk_sealer **out_sealer, struct hk_err *err) HK_MUSTCHECK;
HK_API void hk_sealer_free(struct hk_sealer *sealer); /* accepts NULL; wipes */

/* As hk_outbox_enqueue_pg and hk_outbox_enqueue_sqlite, with the payload sealed. The message has to name its message_id, to which the
 * payload is bound: HK_INVALID without. */
HK_API enum hk_code hk_outbox_enqueue_sealed_pg(struct hk_sealer *sealer, struct pg_conn *conn,
                                                const struct hk_outbox_place *place,
                                                const struct hk_outbox_message *message, int64_t *out_id,
                                                struct hk_err *err) HK_MUSTCHECK;
struct sqlite3;
HK_API enum hk_code hk_outbox_enqueue_sealed_sqlite(struct hk_sealer *sealer, struct sqlite3 *db,
                                                    const struct hk_outbox_message *message, int64_t *out_id,
                                                    struct hk_err *err) HK_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
