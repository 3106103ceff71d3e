/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of all results, one for each operation, and the members that several of them have. */
#ifndef HK_DESK_FORMS_H
#define HK_DESK_FORMS_H

#include "core/letter.h"
#include "desk/form.h"
#include "desk/put.h"
#include "store/figures.h"
#include "store/letters.h"

hk_form_fn hk_form_adopted;
hk_form_fn hk_form_figures, hk_form_status, hk_form_relays, hk_form_clock, hk_form_diagnosis;
hk_form_fn hk_form_destinations, hk_form_destination_paused, hk_form_destination_tested;
hk_form_fn hk_form_destination_shown, hk_form_destination_defined, hk_form_destinations_applied;
hk_form_fn hk_form_queues, hk_form_queue, hk_form_queue_gone;
hk_form_fn hk_form_alerts, hk_form_alert_muted, hk_form_alert_tested;
hk_form_fn hk_form_redrive_plan, hk_form_redrives, hk_form_redrive;
hk_form_fn hk_form_jobs, hk_form_job;
hk_form_fn hk_form_keys, hk_form_keys_rotated, hk_form_keys_retired;
hk_form_fn hk_form_job_head; /* a struct hk_job, as in a list */
hk_form_fn hk_form_audit, hk_form_act, hk_form_verified;
hk_form_fn hk_form_inited, hk_form_config_checked, hk_form_config_schema, hk_form_version;
hk_form_fn hk_form_token_created, hk_form_tokens, hk_form_token_revoked;
hk_form_fn hk_form_enqueued, hk_form_taken; /* taken: of many, one struct hk_str each */
hk_form_fn hk_form_messages, hk_form_message, hk_form_attempts, hk_form_explanation, hk_form_message_acted,
    hk_form_messages_acted;
hk_form_fn hk_form_letters, hk_form_letter_groups, hk_form_letter, hk_form_letter_stats, hk_form_reasons;
hk_form_fn hk_form_dead_line; /* of an export */
hk_form_fn hk_form_dead_acted, hk_form_dead_sent, hk_form_dead_opened, hk_form_dead_edited,
    hk_form_dead_fixed;
hk_form_fn hk_form_policies, hk_form_policy, hk_form_policy_plan, hk_form_policy_simulation;

/* ---- members of an object, beside those of put.h ---- */

hk_form_fn hk_form_count_members;                                                  /* n, estimate */
void hk_form_count(struct hk_form *form, const char *key, struct hk_count *count); /* {"n":…,"estimate":…} */
void hk_form_exact(struct hk_form *form, const char *key, uint64_t *n);            /* the same, no estimate */
void hk_form_held(struct hk_form *form, struct hk_dest_status *dest);
/* "unusable": which relays cannot use a destination, and why; null: none says so. */
void hk_form_unusable(struct hk_form *form, struct hk_unusable *unusable);
hk_form_fn hk_form_attempt;     /* a struct hk_tried */
hk_form_fn hk_form_lately;      /* a struct hk_status_lately */
hk_form_fn hk_form_alert;       /* a struct hk_alert */
hk_form_fn hk_form_redrive_job; /* a struct hk_redrive_job */

/* Why a long act ended early, where it did. */
void hk_form_stopped(struct hk_form *form, struct hk_err *stopped);
const char *hk_did_name(enum hk_letter_did did); /* "done", "unchanged" … */

#endif
