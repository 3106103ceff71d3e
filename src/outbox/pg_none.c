/* SPDX-License-Identifier: Apache-2.0 */
/* A library without PostgreSQL says so when it is asked, not when it is linked. */
#include <hikyaku/outbox_pg.h>
#include <hikyaku/sealer.h>

enum hk_code hk_outbox_enqueue_pg(struct pg_conn *conn, const struct hk_outbox_place *place,
                                  const struct hk_outbox_message *message, int64_t *out_id,
                                  struct hk_err *err)
{
    (void)conn;
    (void)place;
    (void)message;
    (void)out_id;
    return hk_err_set(err, HK_UNSUPPORTED, "this libhikyaku was built without PostgreSQL");
}

enum hk_code hk_outbox_enqueue_sealed_pg(struct hk_sealer *sealer, struct pg_conn *conn,
                                         const struct hk_outbox_place *place,
                                         const struct hk_outbox_message *message, int64_t *out_id,
                                         struct hk_err *err)
{
    (void)sealer;
    return hk_outbox_enqueue_pg(conn, place, message, out_id, err);
}
