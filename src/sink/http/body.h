/* SPDX-License-Identifier: Apache-2.0 */
/* What of a message goes out beside its header fields: the body, and a URL with fields of the message in it. */
#ifndef HK_SINK_HTTP_BODY_H
#define HK_SINK_HTTP_BODY_H

#include "base/json.h"
#include "sink/http/request.h"

/* A URL is a template when one of these stands behind its host. */
#define HK_URL_EVENT_TYPE  "{event_type}"
#define HK_URL_MESSAGE_KEY "{message_key}"
#define HK_URL_DESTINATION "{destination}"

bool hk_url_is_template(const char *url);
/* Fills them in, percent-encoded. HK_INVALID: a field is empty, or would be "." or ".."; HK_NOMEM. */
enum hk_code hk_url_fill(const char *url, const char *destination, const struct hk_message *msg,
                         struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;

/* application/json, application/problem+json; charset=utf-8 … */
bool hk_body_is_json(struct hk_str type);
/* The bytes as a member of that name. */
void hk_body_put_base64(struct hk_json *json, const char *key, struct hk_str payload);
/* A whole CloudEvent (structured mode) around the payload: JSON as it is, byte by byte, all else as base64. HK_INVALID, HK_NOMEM. */
enum hk_code hk_body_event(const char *source, const struct hk_message *msg, struct hk_buf *out,
                           struct hk_err *err) HK_MUSTCHECK;
/* Is its payload JSON, by its content type? Without one it is. */
bool hk_body_has_json(const struct hk_message *msg);
/* Adds the payload as the member "data" of the object that is open (JSON, which the caller has checked), or as "data_base64". */
void hk_body_put_data(struct hk_json *json, const struct hk_message *msg);

#endif
