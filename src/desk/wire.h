/* SPDX-License-Identifier: Apache-2.0 */
/* A request over HTTP: turns path, query and JSON body into the typed request of an operation, and
 * back. Both directions follow the operation's list of fields (op.h), so that server and remote command line cannot differ.
 *
 *   hk_wire_add_path, _query, _body   collect what was given, by name
 *   hk_wire_read                      checks it against the fields and fills the request
 *   hk_wire_write                     the way back: path, query and body for a filled request
 *
 * Errors name the field (`out_field`, NULL when it is no field) and say what it takes. */
#ifndef HK_DESK_WIRE_H
#define HK_DESK_WIRE_H

#include "base/buf.h"
#include "desk/op.h"

#define HK_WIRE_GIVEN_MAX  1200 /* values of one request, items of lists counted one by one */
#define HK_WIRE_ITEMS_MAX  1000 /* of one list: ids, for example */
#define HK_WIRE_REASON_MAX 512

enum hk_given_kind {
    HK_GIVEN_TEXT = 0,
    HK_GIVEN_NUMBER, /* as it was written */
    HK_GIVEN_TRUE,
    HK_GIVEN_FALSE,
    HK_GIVEN_JSON /* where bytes are taken: a JSON value as it was written; elsewhere an object, or a list in a list */
};

/* One value of a name. Texts are in the pool. */
struct hk_given {
    const char *name;
    struct hk_str text; /* terminated */
    enum hk_given_kind kind;
    bool listed; /* it stood in a list */
};

struct hk_wire {
    struct hk_pool *mem;
    struct hk_given *items;
    size_t n;
    const char *wrong; /* the field that the last error is about; NULL = none */
};

/* `mem` outlives it, and holds all that is read. HK_NOMEM. */
enum hk_code hk_wire_init(struct hk_wire *wire, struct hk_pool *mem, struct hk_err *err) HK_MUSTCHECK;
/* One part of a path, still percent-encoded. */
enum hk_code hk_wire_add_path(struct hk_wire *wire, const char *name, struct hk_str part,
                              struct hk_err *err) HK_MUSTCHECK;
/* "a=1&b=two%20words", without the question mark. */
enum hk_code hk_wire_add_query(struct hk_wire *wire, struct hk_str query, struct hk_err *err) HK_MUSTCHECK;
/* A JSON object. Null members count as not given. Where a field of `op` takes bytes, a value that is no text is taken byte for byte
 * as it was written. */
enum hk_code hk_wire_add_body(struct hk_wire *wire, const struct hk_op *op, struct hk_str json,
                              struct hk_err *err) HK_MUSTCHECK;

/* What a call has beside the operation's fields. */
struct hk_wire_caller {
    const char *reason; /* NULL = none */
    bool reveal;
    bool background; /* of operations that can be jobs */
};

/* Fills `request` (zeroed, of op->request_size). HK_INVALID, HK_RANGE or HK_TOOBIG about `wire->wrong`. */
enum hk_code hk_wire_read(struct hk_wire *wire, const struct hk_op *op, void *request,
                          struct hk_wire_caller *out_caller, struct hk_err *err) HK_MUSTCHECK;

/* ---- the way back ---- */

struct hk_wire_out {
    struct hk_buf path; /* below /api/v1, with its query */
    struct hk_buf body; /* JSON; empty for GET */
    const char *method; /* static */
    char method_text[8];
};

void hk_wire_out_init(struct hk_wire_out *out);
void hk_wire_out_fini(struct hk_wire_out *out);
/* Values that are what they are without being given are left out. HK_UNSUPPORTED: the operation has no route. */
enum hk_code hk_wire_write(const struct hk_op *op, const void *request, const struct hk_wire_caller *caller,
                           struct hk_wire_out *out, struct hk_err *err) HK_MUSTCHECK;

/* All fields of a request as one JSON object, those of the path too: what hk_wire_add_body and hk_wire_read take. */
enum hk_code hk_wire_write_fields(const struct hk_op *op, const void *request, struct hk_buf *out,
                                  struct hk_err *err) HK_MUSTCHECK;

/* ---- for routes ---- */

/* "POST", and the path behind it. */
struct hk_str hk_route_method(const char *route);
const char *hk_route_path(const char *route);
/* Are its fields in the query (GET, DELETE), or in a JSON body? */
bool hk_route_in_query(const char *route);
/* Does a raw path (below /api/v1) fit the route's? Its parts in braces are added to `wire` when that is not NULL. */
bool hk_route_fits(const char *route, struct hk_str path);
enum hk_code hk_route_take(const char *route, struct hk_str path, struct hk_wire *wire,
                           struct hk_err *err) HK_MUSTCHECK;

#endif
