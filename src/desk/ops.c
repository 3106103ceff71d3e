/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations. Each row stands in the file of its family. */
#include "desk/adopt.h"
#include "desk/alerts.h"
#include "desk/audit.h"
#include "desk/clock.h"
#include "desk/dead.h"
#include "desk/dead_look.h"
#include "desk/definitions.h"
#include "desk/destinations.h"
#include "desk/doctor.h"
#include "desk/enqueue.h"
#include "desk/events.h"
#include "desk/explain.h"
#include "desk/figures.h"
#include "desk/job.h"
#include "desk/keys.h"
#include "desk/messages.h"
#include "desk/policy.h"
#include "desk/queues.h"
#include "desk/redrive.h"
#include "desk/setup.h"
#include "desk/status.h"
#include "desk/token.h"
#include "desk/whoami.h"

const struct hk_op *const hk_ops[] = {
    &hk_op_init,
    &hk_op_adopt,
    &hk_op_enqueue,
    &hk_op_enqueue_lines,
    &hk_op_status,
    &hk_op_figures,
    &hk_op_events,
    &hk_op_messages_list,
    &hk_op_messages_show,
    &hk_op_messages_attempts,
    &hk_op_messages_explain,
    &hk_op_messages_cancel,
    &hk_op_messages_cancel_one,
    &hk_op_messages_restore,
    &hk_op_messages_erase,
    &hk_op_messages_retry,
    &hk_op_destinations_list,
    &hk_op_destinations_show,
    &hk_op_destinations_create,
    &hk_op_destinations_update,
    &hk_op_destinations_delete,
    &hk_op_destinations_apply,
    &hk_op_destinations_pause,
    &hk_op_destinations_resume,
    &hk_op_destinations_test,
    &hk_op_queues_list,
    &hk_op_queues_show,
    &hk_op_queues_create,
    &hk_op_queues_update,
    &hk_op_queues_delete,
    &hk_op_queues_purge,
    &hk_op_queues_pause,
    &hk_op_queues_resume,
    &hk_op_relays_list,
    &hk_op_clock_show,
    &hk_op_clock_reset,
    &hk_op_dead_list,
    &hk_op_dead_groups,
    &hk_op_dead_show,
    &hk_op_dead_stats,
    &hk_op_dead_export,
    &hk_op_dead_reasons,
    &hk_op_dead_open,
    &hk_op_dead_edit,
    &hk_op_dead_fix,
    &hk_op_dead_requeue,
    &hk_op_dead_send,
    &hk_op_dead_resolve,
    &hk_op_dead_discard,
    &hk_op_dead_restore,
    &hk_op_dead_erase,
    &hk_op_dead_note,
    &hk_op_redrive_plan,
    &hk_op_redrive_start,
    &hk_op_redrive_list,
    &hk_op_redrive_show,
    &hk_op_redrive_cancel,
    &hk_op_job_list,
    &hk_op_job_show,
    &hk_op_job_cancel,
    &hk_op_keys_list,
    &hk_op_keys_rotate,
    &hk_op_keys_retire,
    &hk_op_alerts_list,
    &hk_op_alerts_test,
    &hk_op_alerts_mute,
    &hk_op_alerts_unmute,
    &hk_op_doctor,
    &hk_op_policy_list,
    &hk_op_policy_show,
    &hk_op_policy_plan,
    &hk_op_policy_simulate,
    &hk_op_token_create,
    &hk_op_token_list,
    &hk_op_token_revoke,
    &hk_op_audit_list,
    &hk_op_audit_show,
    &hk_op_audit_verify,
    &hk_op_config_check,
    &hk_op_config_schema,
    &hk_op_whoami,
    &hk_op_version,
};
const size_t hk_n_ops = sizeof hk_ops / sizeof hk_ops[0];

void hk_op_write(const struct hk_op *op, struct hk_json *json, const void *result)
{
    hk_form_write(json, op->form, result);
}
