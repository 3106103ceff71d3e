/* SPDX-License-Identifier: Apache-2.0 */
/* Mode `rest`: the server never has the key. So a payload that is to leave outbox is read first, sealed here, and given to the statement
 * that moves its row; the statement takes it in the row's stead. */
#ifndef HK_STORE_PG_REST_H
#define HK_STORE_PG_REST_H

#include "store/pg/pg.h"

/* Rows of outbox, and what is to be written of them. In the call's pool. */
struct hk_pg_rest {
    int64_t *ids;
    struct hk_str *encodings, *payloads;
    size_t n;
};

/* Within a call, before its transaction. `statement` gives id, message_id, encoding and payload of rows that are not sealed. Without
 * `keys` nothing is asked. Errors stick: HK_BUSY when the key cannot be had. */
struct hk_pg_rest hk_pg_rest_read(struct hk_pg *pg, struct hk_keyring *keys, unsigned statement,
                                  const struct hk_pg_args *args);
/* Three parameters: ids, encodings, payloads. */
void hk_pg_arg_rest(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_pg_rest *rest);
/* The same, of one row alone. */
void hk_pg_arg_rest_of(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_pg_rest *rest, int64_t id);

#endif
