/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that all stores read in the same way. */
#include "store/api.h"
#include "store/cells.h"
#include "store/jobs.h"

static uint32_t count32(const struct hk_cells *row, int column)
{
    uint64_t value = hk_cells_count(row, column);
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static struct hk_str job_text(const struct hk_cells *row, int column)
{
    return row->text(row, column, HK_JOB_TEXT_MAX);
}

int hk_cells_job(const struct hk_cells *row, struct hk_job *out)
{
    *out = (struct hk_job){.id = row->number(row, 0),
                           .status = hk_job_status_by_name(job_text(row, 1)),
                           .operation = job_text(row, 2),
                           .actor = job_text(row, 3),
                           .reason = job_text(row, 4),
                           .role = job_text(row, 5),
                           .reveal = row->flag(row, 6),
                           .progress = {.done = hk_cells_count(row, 7),
                                        .total = hk_cells_count(row, 8),
                                        .changed = hk_cells_count(row, 9),
                                        .failed = hk_cells_count(row, 10)},
                           .act_id = row->number(row, 11),
                           .error_code = job_text(row, 12),
                           .error = job_text(row, 13),
                           .cancelled_by = job_text(row, 14),
                           .cancel_reason = job_text(row, 15),
                           .owner = job_text(row, 16),
                           .created_ms = row->number(row, 17),
                           .started_ms = row->number(row, 18),
                           .ended_ms = row->number(row, 19),
                           .tries = count32(row, 20),
                           .token = row->number(row, 21)};
    return 22;
}

static struct hk_str token_text(const struct hk_cells *row, int column)
{
    return row->text(row, column, HK_TOKEN_TEXT_MAX);
}

void hk_cells_token(const struct hk_cells *row, struct hk_token *out)
{
    *out = (struct hk_token){.id = row->number(row, 0),
                             .name = token_text(row, 1),
                             .role = token_text(row, 2),
                             .reveal = row->flag(row, 3),
                             .created_ms = row->number(row, 4),
                             .created_by = token_text(row, 5),
                             .reason = token_text(row, 6),
                             .expires_ms = row->number(row, 7),
                             .revoked_ms = row->number(row, 8),
                             .revoked_by = token_text(row, 9),
                             .last_used_ms = row->number(row, 10)};
}
